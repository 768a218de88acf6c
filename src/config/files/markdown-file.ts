import { stat } from "node:fs/promises";
import { UserError } from "../../base/errors.ts";
import { importModule } from "../../base/import-module.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import type { MarkdownFile } from "./markdown.ts";

const fileLimitBytes = 256 * 1024;

/**
 * Reads a file with front matter. Throws a system error, or a {@link UserError} if the file is too large, not
 * a regular file or not parseable.
 */
export async function readMarkdownFile(path: string): Promise<MarkdownFile> {
  // Check first: opening a pipe would block.
  const found = await stat(path);
  if (!found.isFile()) throw new UserError("is not a regular file");
  if (found.size > fileLimitBytes)
    throw new UserError(`has ${found.size} bytes, the limit is ${fileLimitBytes}. Make it shorter.`);
  const { parseMarkdown } = await importModule(() => import("./markdown.ts"));
  return parseMarkdown((await readRegularFile(path)).toString("utf8"));
}
