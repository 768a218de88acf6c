import type { ToolKind } from "../../message/part.ts";
import { showInvisible } from "../../permission/invisible.ts";
import { cut } from "./card-limits.ts";
import type { ClientFeatures } from "../client-capabilities.ts";

/** Characters of a card's title, which may be a whole command. */
const titleLength = 20_000;

/** Kinds whose titles are text to every client: commands and files. */
const plainKinds: ReadonlySet<ToolKind> = new Set(["execute", "edit"]);

/** A call's title with everything in it visible, also where the client takes it for Markdown. */
export function formatTitle(
  title: string,
  kind: ToolKind,
  { markdownTitles }: Pick<ClientFeatures, "markdownTitles">,
): string {
  const shown = cut(showInvisible(title), titleLength);
  return markdownTitles && !plainKinds.has(kind) ? escapeMarkdown(shown) : shown;
}

/** Signs of Markdown that stand for something; an underscore inside of a word does not, nor does a dash behind one. */
function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*[\]<>~|]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|^[#+-](?=\s)/gu, "\\$&");
}
