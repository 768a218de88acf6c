import { createPlugin, htmlToMarkdown } from "@mdream/js";
import type { TextNode } from "@mdream/js";
import { detectByteOrderMark, isBinary } from "../text-file.ts";

export type PageFormat = "markdown" | "text" | "html";

/** A response body with its `content-type`. */
export interface Page {
  readonly bytes: Buffer;
  readonly contentType: string;
  /** Base for the links in it. */
  readonly url: URL;
}

export type PageContent =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "image"; readonly mime: string }
  | { readonly kind: "binary"; readonly mime: string };

const imageTypes = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const textTypes =
  /^text\/|[/+](?:json|xml|yaml|x-yaml|toml|javascript|x-javascript|ecmascript|typescript|graphql|sql|x-sh|ndjson|x-ndjson|jsonl|x-www-form-urlencoded)$/;
const htmlTypes = new Set(["text/html", "application/xhtml+xml"]);
const unspecificTypes = new Set(["", "application/octet-stream", "binary/octet-stream"]);

/** Whether the page may need conversion from HTML. */
export function mayBeHtml(contentType: string): boolean {
  const mime = parseMime(contentType);
  return htmlTypes.has(mime) || unspecificTypes.has(mime);
}

/** Converts a page for the model: HTML to the requested format, other text unchanged. */
export function readPage(page: Page, format: PageFormat): PageContent {
  const { bytes, contentType, url } = page;
  const mime = parseMime(contentType);
  if (imageTypes.has(mime)) return { kind: "image", mime };
  const isText = unspecificTypes.has(mime) ? !isBinary(bytes) : textTypes.test(mime);
  if (!isText) return { kind: "binary", mime };
  const text = decode(bytes, detectCharset(page));
  if (format === "html" || !isHtml(mime, text)) return { kind: "text", text };
  return { kind: "text", text: format === "markdown" ? toMarkdown(text, url) : toPlainText(text) };
}

const parseMime = (contentType: string): string => contentType.split(";")[0]?.trim().toLowerCase() ?? "";

function isHtml(mime: string, text: string): boolean {
  if (htmlTypes.has(mime)) return true;
  return unspecificTypes.has(mime) && /^\s*<(?:!doctype html|html)\b/i.test(text.slice(0, 1000));
}

/** Order of precedence: byte order mark, HTTP header, the page itself (WHATWG, encoding). */
function detectCharset({ bytes, contentType }: Page): string {
  const mark = detectByteOrderMark(bytes);
  if (mark !== undefined) return { utf8: "utf-8", utf16le: "utf-16le", utf16be: "utf-16be" }[mark];
  const beginning = bytes.subarray(0, 1024).toString("latin1");
  return (
    /;\s*charset\s*=\s*"?([\w:.-]+)/i.exec(contentType)?.[1] ??
    /<meta\b[^>]*\bcharset\s*=\s*["']?\s*([\w:.-]+)/i.exec(beginning)?.[1] ??
    "utf-8"
  );
}

function decode(bytes: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch (error) {
    // Unknown name of a character set.
    if (error instanceof RangeError) return new TextDecoder().decode(bytes);
    throw error;
  }
}

function toMarkdown(html: string, url: URL): string {
  return htmlToMarkdown(html, { origin: new URL(".", url).href }).trim();
}

/** Inline elements. */
const inline = new Set(
  "a abbr b bdi bdo cite code data del dfn em font i img ins kbd label mark q s samp small span strong sub sup time u var wbr".split(
    " ",
  ),
);
const cells = new Set(["td", "th"]);

function toPlainText(html: string): string {
  let text = "";
  const breakLine = ({ name }: { name: string }) => {
    if (!inline.has(name) && !cells.has(name)) text += "\n";
  };
  const collector = createPlugin({
    onNodeEnter: breakLine,
    onNodeExit: (node) => {
      if (cells.has(node.name)) text += "\t";
      breakLine(node);
    },
    processTextNode: (node: TextNode) => {
      if (!node.excludedFromMarkdown) text += node.value;
      return undefined;
    },
  });
  htmlToMarkdown(html, { hooks: [collector] });
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();
}
