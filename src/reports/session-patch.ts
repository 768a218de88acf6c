import { createHash } from "node:crypto";
import { relative } from "node:path";
import { deflateSync } from "node:zlib";
import { findHunks, formatHunk, splitLines } from "../base/text/line-diff.ts";
import { defaultMode, type NetChange, type StoredContent, toMergeableText } from "../undo/net-changes.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import { toSlashes } from "../base/files/paths.ts";
import { isInside } from "../workspace/paths.ts";

/** A file that a patch cannot contain. */
export interface OmittedFile {
  readonly path: string;
  readonly reason: string;
}

export interface SessionPatch {
  /** In git's format; empty without changes. */
  readonly text: string;
  readonly omitted: readonly OmittedFile[];
}

const linkMode = "120000";
/** Bytes per line of a binary patch. */
const binaryLineBytes = 52;
const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/** Formats changes as a patch that `git apply` takes in `root`, with binary files. */
export async function formatPatch(
  nets: readonly NetChange[],
  root: string,
  snapshots: Pick<Snapshots, "load">,
): Promise<SessionPatch> {
  const omitted: OmittedFile[] = [];
  const texts: string[] = [];
  for (const net of nets) {
    const formatted = await formatFile(net, root, snapshots);
    if (typeof formatted === "string") texts.push(formatted);
    else omitted.push(formatted);
  }
  return { text: texts.join(""), omitted };
}

async function formatFile(
  net: NetChange,
  root: string,
  snapshots: Pick<Snapshots, "load">,
): Promise<string | OmittedFile> {
  const { path, fromPath = path, before, after, wasLink = false, isLink = false } = net;
  if (![path, fromPath].every((one) => isInside(one, [root])))
    return { path, reason: `it is outside ${root}` };
  const [old, fresh] = [await load(before, snapshots), await load(after, snapshots)];
  if (old === undefined || fresh === undefined) return { path, reason: "its content is not stored" };
  const [oldName, newName] = [nameOf(root, fromPath), nameOf(root, path)];
  const oldMode = wasLink ? linkMode : gitMode(net.mode);
  const newMode = isLink ? linkMode : gitMode(net.newMode ?? net.mode);
  // Git changes a file into a link by a removal and a creation.
  if (old !== null && fresh !== null && wasLink !== isLink)
    return [
      formatOne({ oldName, newName: oldName, old, fresh: null, oldMode, newMode }),
      formatOne({ oldName: newName, newName, old: null, fresh, oldMode, newMode }),
    ].join("");
  return formatOne({ oldName, newName, old, fresh, oldMode, newMode });
}

interface PatchedFile {
  readonly oldName: string;
  readonly newName: string;
  /** Null where there is no file. */
  readonly old: Buffer | null;
  readonly fresh: Buffer | null;
  readonly oldMode: string;
  readonly newMode: string;
}

function formatOne(file: PatchedFile): string {
  const { oldName, newName, old, fresh, oldMode, newMode } = file;
  const content = formatContent(file);
  const header = formatHeader(file);
  if (content === "" && header.length === 0) return "";
  const isBinary = content.startsWith("GIT binary");
  const mode = old !== null && fresh !== null && oldMode === newMode ? ` ${newMode}` : "";
  return [
    `diff --git ${quote(`a/${oldName}`)} ${quote(`b/${newName}`)}`,
    ...header,
    ...(content === "" ? [] : [`index ${objectId(old)}..${objectId(fresh)}${mode}`]),
    ...(content === "" || isBinary
      ? []
      : [
          `--- ${old === null ? "/dev/null" : quote(`a/${oldName}`)}`,
          `+++ ${fresh === null ? "/dev/null" : quote(`b/${newName}`)}`,
        ]),
    content,
  ]
    .join("\n")
    .replace(/\n*$/, isBinary ? "\n\n" : "\n");
}

function formatHeader({ oldName, newName, old, fresh, oldMode, newMode }: PatchedFile): string[] {
  if (old === null) return [`new file mode ${newMode}`];
  if (fresh === null) return [`deleted file mode ${oldMode}`];
  return [
    ...(oldMode === newMode ? [] : [`old mode ${oldMode}`, `new mode ${newMode}`]),
    ...(oldName === newName ? [] : [`rename from ${quote(oldName)}`, `rename to ${quote(newName)}`]),
  ];
}

/** Returns hunks, a binary patch, or an empty text for equal contents. */
function formatContent({ old, fresh }: PatchedFile): string {
  const [oldBytes, newBytes] = [old ?? Buffer.alloc(0), fresh ?? Buffer.alloc(0)];
  if (oldBytes.equals(newBytes)) return "";
  const [oldText, newText] = [toMergeableText(oldBytes), toMergeableText(newBytes)];
  if (oldText === undefined || newText === undefined)
    return `GIT binary patch\n${formatBinary(newBytes)}\n\n${formatBinary(oldBytes)}`;
  const [oldLines, newLines] = [splitLines(oldText), splitLines(newText)];
  return findHunks(oldLines, newLines)
    .flatMap((hunk) => {
      const { start, end, newStart, newEnd } = hunk;
      const head = `@@ -${formatRange(start, end)} +${formatRange(newStart, newEnd)} @@`;
      return [head, ...formatHunk(hunk, oldLines, newLines)];
    })
    .join("\n");
}

/** An empty range is named by the line before it. */
function formatRange(start: number, end: number): string {
  return `${end === start ? start : start + 1},${end - start}`;
}

function formatBinary(bytes: Buffer): string {
  const packed = deflateSync(bytes);
  const lines = [`literal ${bytes.length}`];
  for (let at = 0; at < packed.length; at += binaryLineBytes) {
    const part = packed.subarray(at, at + binaryLineBytes);
    const length = String.fromCharCode(part.length <= 26 ? 64 + part.length : 70 + part.length);
    lines.push(length + encodeBase85(part));
  }
  return lines.join("\n");
}

/** Encodes groups of four bytes as five letters, as git does. The last group is filled with zeros. */
function encodeBase85(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    const group = Buffer.alloc(4);
    bytes.copy(group, 0, at, at + 4);
    let value = group.readUInt32BE();
    let letters = "";
    for (let letter = 0; letter < 5; letter++) {
      letters = (base85[value % 85] ?? "") + letters;
      value = Math.floor(value / 85);
    }
    text += letters;
  }
  return text;
}

/** Returns the name that git gives to a content. */
function objectId(bytes: Buffer | null): string {
  if (bytes === null) return "0".repeat(40);
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

async function load(
  content: StoredContent,
  snapshots: Pick<Snapshots, "load">,
): Promise<Buffer | null | undefined> {
  return typeof content === "string" ? snapshots.load(content) : content;
}

function nameOf(root: string, path: string): string {
  return toSlashes(relative(root, path));
}

/** Git knows only whether a file is executable. */
function gitMode(mode = defaultMode): string {
  return (mode & 0o100) === 0 ? "100644" : "100755";
}

/** Quotes a name with characters that would end it, as git does. */
function quote(name: string): string {
  // oxlint-disable-next-line no-control-regex
  const controls = /[\u0000-\u001f\u007f]/g;
  if (!/["\\]/.test(name) && name.search(controls) === -1) return name;
  const escaped = name.replace(/[\\"]/g, "\\$&");
  const shown = escaped.replace(
    controls,
    (letter) => `\\${letter.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
  return `"${shown}"`;
}
