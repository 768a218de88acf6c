/** For authors' files that import zod and have none installed. */
export * from "zod";
export { default } from "zod";
