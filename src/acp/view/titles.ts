import type { ToolKind } from "../../message/part.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import { cut } from "./card-limits.ts";
import type { ClientFeatures } from "../client-capabilities.ts";

/** Characters of a title, which may be a whole command. */
const titleLength = 20_000;

/** Kinds whose titles every client shows as plain text: commands and files. */
const plainKinds: ReadonlySet<ToolKind> = new Set(["execute", "edit"]);

/** Formats a call's title: invisible characters are shown, Markdown is escaped if the client renders it. */
export function formatTitle(
  title: string,
  kind: ToolKind,
  { markdownTitles }: Pick<ClientFeatures, "markdownTitles">,
): string {
  const shown = cut(showInvisible(title), titleLength);
  return markdownTitles && !plainKinds.has(kind) ? escapeMarkdown(shown) : shown;
}

/** Escapes Markdown syntax, but no underscore inside a word and no dash after one. */
function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*[\]<>~|]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|^[#+-](?=\s)/gu, "\\$&");
}
