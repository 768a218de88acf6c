import { readFile } from "node:fs/promises";
import { codeOf, messageOf } from "../../base/errors.ts";
import { UsageError } from "../command-line/usage.ts";

/** Reads the file that a flag names. Throws {@link UsageError}. */
export async function readTextFile(flag: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const problem = codeOf(error) === "ENOENT" ? "file not found" : messageOf(error);
    throw new UsageError(`--${flag}: ${problem}: ${path}`, "run");
  }
}
