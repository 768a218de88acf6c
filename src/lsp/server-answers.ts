import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Range } from "./connection/positions.ts";

/** Maximum number of items that are read from one answer. */
const itemLimit = 20_000;
/** Maximum depth of nested symbols. */
const depthLimit = 20;

/** A place named by a server. */
export interface ServerLocation {
  readonly uri: string;
  readonly range: Range;
}

/** A symbol, with the name of the symbol that contains it. Symbols of a file are sorted as the server sends them. */
export interface ServerSymbol {
  readonly name: string;
  /** The protocol's SymbolKind. */
  readonly kind: number;
  readonly container: string;
  readonly depth: number;
  /** Undefined if the server names no file. */
  readonly uri: string | undefined;
  readonly range: Range;
  /** Undefined if the server does not say where the name is. */
  readonly nameRange: Range | undefined;
}

/** A call of a function: who calls, or who is called, and where. */
export interface ServerCall {
  readonly name: string;
  readonly kind: number;
  readonly uri: string;
  readonly nameRange: Range;
  /** Where the calls are: in the caller's file. */
  readonly calls: readonly Range[];
}

/** One step of a workspace edit, in order. */
export type EditStep =
  | {
      readonly type: "edit";
      readonly uri: string;
      readonly version: number | undefined;
      readonly edits: readonly TextEdit[];
    }
  | {
      readonly type: "create";
      readonly uri: string;
      readonly overwrite: boolean;
      readonly ignoreIfExists: boolean;
    }
  | {
      readonly type: "rename";
      readonly from: string;
      readonly uri: string;
      readonly overwrite: boolean;
      readonly ignoreIfExists: boolean;
    }
  | { readonly type: "delete"; readonly uri: string; readonly ignoreIfMissing: boolean };

export interface TextEdit {
  readonly range: Range;
  readonly newText: string;
}

const positionSchema = z.object({ line: z.number().int().min(0), character: z.number().int().min(0) });
const rangeSchema = z.object({ start: positionSchema, end: positionSchema });
const zeroRange: Range = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };

const locationSchema = z.union([
  z
    .object({ targetUri: z.string(), targetSelectionRange: rangeSchema.optional(), targetRange: rangeSchema })
    .transform(({ targetUri: uri, targetRange, targetSelectionRange: range = targetRange }) => ({
      uri,
      range,
    })),
  z.object({ uri: z.string(), range: rangeSchema }),
]);

/** Parses Location, Location[] or LocationLink[]. Invalid items are left out; duplicates too. */
export function parseLocations(answer: unknown): ServerLocation[] {
  const found = toList(answer).flatMap((item) => locationSchema.safeParse(item).data ?? []);
  return [...new Map(found.map((location) => [JSON.stringify(location), location])).values()];
}

const markedSchema = z.union([
  z.string(),
  z
    .object({ language: z.string(), value: z.string() })
    .transform(({ language, value }) => `\`\`\`${language}\n${value}\n\`\`\``),
  z.object({ value: z.string() }).transform(({ value }) => value),
]);

/** Parses the contents of a hover: MarkedString, MarkedString[] or MarkupContent; empty if there are none. */
export function parseHover(answer: unknown): string {
  const contents = z.looseObject({ contents: z.unknown() }).safeParse(answer).data?.contents;
  const texts = toList(contents).flatMap((item) => markedSchema.safeParse(item).data ?? []);
  return texts
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .join("\n\n");
}

const symbolFields = { name: z.string(), kind: z.number().catch(0), containerName: z.string().nullish() };
const flatSymbolSchema = z.object({
  ...symbolFields,
  location: z.object({ uri: z.string(), range: rangeSchema.nullish() }),
});
const nestedSymbolSchema = z.object({
  ...symbolFields,
  range: rangeSchema,
  selectionRange: rangeSchema.nullish(),
  children: z.array(z.unknown()).nullish(),
});

/** Parses DocumentSymbol[], SymbolInformation[] or WorkspaceSymbol[]. Invalid items are left out. */
export function parseSymbols(answer: unknown): ServerSymbol[] {
  const found: ServerSymbol[] = [];
  collectSymbols(toList(answer), "", 0, found);
  return found;
}

function collectSymbols(
  items: readonly unknown[],
  container: string,
  depth: number,
  found: ServerSymbol[],
): void {
  for (const item of items) {
    if (found.length >= itemLimit) return;
    const flat = flatSymbolSchema.safeParse(item).data;
    if (flat !== undefined) {
      const { name, kind, containerName, location } = flat;
      const range = location.range ?? zeroRange;
      found.push({
        name,
        kind,
        container: containerName ?? "",
        depth: 0,
        uri: location.uri,
        range,
        nameRange: undefined,
      });
      continue;
    }
    const nested = nestedSymbolSchema.safeParse(item).data;
    if (nested === undefined) continue;
    const { name, kind, range, selectionRange, children } = nested;
    found.push({
      name,
      kind,
      container,
      depth,
      uri: undefined,
      range,
      nameRange: selectionRange ?? undefined,
    });
    const inner = container === "" ? name : `${container}.${name}`;
    if (depth < depthLimit) collectSymbols(children ?? [], inner, depth + 1, found);
  }
}

const callItemSchema = z.looseObject({
  name: z.string(),
  kind: z.number().catch(0),
  uri: z.string(),
  selectionRange: rangeSchema,
});

/** Parses the items of `prepareCallHierarchy`, which are sent back as they came. */
export function parseCallItems(answer: unknown): z.output<typeof callItemSchema>[] {
  return toList(answer).flatMap((item) => callItemSchema.safeParse(item).data ?? []);
}

/** Parses incoming or outgoing calls. */
export function parseCalls(answer: unknown, direction: "from" | "to"): ServerCall[] {
  return toList(answer).flatMap((item) => {
    const call = z
      .looseObject({ [direction]: callItemSchema, fromRanges: z.array(rangeSchema).catch([]) })
      .safeParse(item).data;
    const other = callItemSchema.safeParse(call?.[direction]).data;
    if (call === undefined || other === undefined) return [];
    const { name, kind, uri, selectionRange } = other;
    const calls = z.array(rangeSchema).parse(call.fromRanges);
    return [{ name, kind, uri, nameRange: selectionRange, calls }];
  });
}

const textEditSchema = z.object({ range: rangeSchema, newText: z.string() });
const optionsSchema = z
  .looseObject({
    overwrite: z.boolean().optional(),
    ignoreIfExists: z.boolean().optional(),
    ignoreIfNotExists: z.boolean().optional(),
  })
  .nullish();
const stepSchema = z.union([
  z
    .object({
      textDocument: z.object({ uri: z.string(), version: z.number().nullish() }),
      edits: z.array(textEditSchema),
    })
    .transform(({ textDocument: { uri, version }, edits }): EditStep => ({
      type: "edit",
      uri,
      version: version ?? undefined,
      edits,
    })),
  z
    .object({ kind: z.literal("create"), uri: z.string(), options: optionsSchema })
    .transform(({ uri, options }): EditStep => ({ type: "create", uri, ...existingOptions(options) })),
  z
    .object({ kind: z.literal("rename"), oldUri: z.string(), newUri: z.string(), options: optionsSchema })
    .transform(({ oldUri: from, newUri: uri, options }): EditStep => ({
      type: "rename",
      from,
      uri,
      ...existingOptions(options),
    })),
  z
    .object({ kind: z.literal("delete"), uri: z.string(), options: optionsSchema })
    .transform(({ uri, options }): EditStep => ({
      type: "delete",
      uri,
      ignoreIfMissing: options?.ignoreIfNotExists === true,
    })),
]);

function existingOptions(options: z.output<typeof optionsSchema>) {
  return { overwrite: options?.overwrite === true, ignoreIfExists: options?.ignoreIfExists === true };
}

const workspaceEditSchema = z.looseObject({
  changes: z.record(z.string(), z.array(textEditSchema)).nullish(),
  documentChanges: z.array(stepSchema).max(itemLimit).nullish(),
});

/** Parses a WorkspaceEdit; undefined for other values. Nothing of it is left out: half an edit would break the project. */
export function parseWorkspaceEdit(answer: unknown): EditStep[] | undefined {
  if (answer === null || answer === undefined) return [];
  const edit = workspaceEditSchema.safeParse(answer).data;
  if (edit === undefined) return undefined;
  // With both forms, the protocol prefers the one with versions.
  if (edit.documentChanges) return edit.documentChanges;
  return Object.entries(edit.changes ?? {}).map(([uri, edits]) => ({
    type: "edit",
    uri,
    version: undefined,
    edits,
  }));
}

/**
 * The path of a file URI; undefined for other URIs, such as `jdt://`. Servers encode paths in different ways, and some
 * write the drives of Windows in lower case, which real paths have in upper case.
 */
export function toPath(uri: string, windows = process.platform === "win32"): string | undefined {
  try {
    return fileURLToPath(uri, { windows }).replace(/^[a-z]:/, (drive) => drive.toUpperCase());
  } catch {
    // Not a file URI.
    return undefined;
  }
}

function toList(answer: unknown): unknown[] {
  if (answer === null || answer === undefined) return [];
  return Array.isArray(answer) ? answer.slice(0, itemLimit) : [answer];
}
