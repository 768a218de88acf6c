import type { QueryContext } from "../../lsp/language-queries.ts";
import type { ReadText } from "../../lsp/language-server.ts";
import { messageOf, UserError } from "../../base/errors.ts";
import { decodeText } from "../text-file.ts";
import { type RunContext, type ToolContext, ToolFailure } from "../tool.ts";

/** Longer texts are not shown to language servers. */
const textLimitBytes = 1024 * 1024;

/** Returns a function that reads files with the editor's unsaved changes. */
export function createReader({ workspace }: Pick<ToolContext, "workspace">): ReadText {
  return async (path) => {
    try {
      const { bytes } = await workspace.files.read(path);
      return bytes.byteLength > textLimitBytes ? undefined : decodeText(bytes)?.text;
    } catch {
      // Missing, not a file, or not readable: the server is shown nothing.
      return undefined;
    }
  };
}

/** Returns how queries of a call read files and wait; the call shows the server's current task. */
export function createQueryContext(
  context: ToolContext,
  run: Pick<RunContext, "signal" | "output">,
): QueryContext {
  let shown = "";
  return {
    read: createReader(context),
    signal: run.signal,
    onProgress: (text) => {
      if (text !== shown) run.output(`${text} …\n`);
      shown = text;
    },
  };
}

/** Turns messages of language servers into failures for the model. */
export async function explainServerErrors<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const text = messageOf(error);
    throw new ToolFailure(/\bgrep\b/.test(text) ? text : `${text} Use grep and read instead.`, {
      cause: error,
    });
  }
}
