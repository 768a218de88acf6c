/** Loads Node's child_process when first used: it takes a millisecond, and a start needs no process. */
export const childProcess = () => process.getBuiltinModule("node:child_process");
