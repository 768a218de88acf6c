import { stat } from "node:fs/promises";
import { UserError } from "../../base/errors.ts";
import { importModule } from "../../base/import-module.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import type { MarkdownFile } from "./markdown.ts";

/** Largest Markdown file with settings that is read. */
const fileLimitBytes = 256 * 1024;

/** Reads a file with front matter. Throws a system error, or a {@link UserError} for what is too large, no file, or not readable as one. */
export async function readMarkdownFile(path: string): Promise<MarkdownFile> {
  // Asked before it is opened: a pipe would wait for its writer.
  const found = await stat(path);
  if (!found.isFile()) throw new UserError("is not a file");
  if (found.size > fileLimitBytes)
    throw new UserError(`has ${found.size} bytes, ${fileLimitBytes} are read at most. Make it shorter.`);
  const { parseMarkdown } = await importModule(() => import("./markdown.ts"));
  return parseMarkdown((await readRegularFile(path)).toString("utf8"));
}
