/** For plugin files that import zod without installing it. */
export * from "zod";
export { default } from "zod";
