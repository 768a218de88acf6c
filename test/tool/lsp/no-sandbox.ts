import type { ConfineProgram } from "../../../src/sandbox/project-sandbox.ts";

/** For servers without a sandbox in their entry. */
export const noSandbox: ConfineProgram = () => Promise.reject(new Error("no sandbox in this test"));
