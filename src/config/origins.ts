import { isRecord } from "../base/text/record.ts";
import { getPosition, getSourceText, type ParsedFile } from "./files/config-file.ts";
import type { ConfigScope, LoadedConfig } from "./load.ts";
import { concatenatedLists } from "./merge.ts";

/** An effective value and where it was written. Line and column count from 1. */
export interface ConfigValue {
  readonly path: readonly string[];
  readonly value: unknown;
  /** Source text of the value, before substitution. */
  readonly written: string | undefined;
  readonly source: string;
  readonly scope: ConfigScope;
  readonly line: number;
  readonly column: number;
}

type Layer = LoadedConfig["layers"][number];
type Path = readonly (string | number)[];

/** Lists every configuration value with the layer it comes from. `files` maps sources to parsed files. */
export function findOrigins(
  { config, layers }: Pick<LoadedConfig, "config" | "layers">,
  files: ReadonlyMap<string, ParsedFile>,
): ConfigValue[] {
  return listLeaves(config, []).flatMap(({ path, value }) => {
    const found = findOrigin(path, value, layers);
    const file = found && files.get(found.layer.source);
    if (found === undefined || file === undefined) return [];
    const { source, scope } = found.layer;
    const position = getPosition(file, found.path);
    return [{ path, value, written: getSourceText(file, found.path), source, scope, ...position }];
  });
}

interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** Lists whose layers are concatenated are split into items. An empty object is a value too. */
function listLeaves(value: unknown, path: readonly string[]): Leaf[] {
  const isSum = Array.isArray(value) && path.length === 1 && concatenatedLists.has(path[0] ?? "");
  if (isSum) return value.flatMap((item: unknown, at) => listLeaves(item, [...path, String(at)]));
  if (!isRecord(value) || Object.keys(value).length === 0) return path.length === 0 ? [] : [{ path, value }];
  return Object.entries(value).flatMap(([key, item]) => listLeaves(item, [...path, key]));
}

interface Origin {
  readonly layer: Layer;
  /** Path of the value in the layer's file. */
  readonly path: Path;
}

/** Finds the highest layer that sets the path, directly or by a short form of a parent ("bash": "ask"). */
function findOrigin(path: readonly string[], value: unknown, layers: readonly Layer[]): Origin | undefined {
  for (const layer of layers.toReversed()) {
    const found = findPath(layer.value, path, value);
    if (found !== undefined) return { layer, path: found };
  }
  return undefined;
}

function findPath(config: unknown, path: readonly string[], value: unknown): Path | undefined {
  const [list = "", ...rest] = path;
  if (concatenatedLists.has(list) && rest.length === 1) {
    const items: unknown = isRecord(config) ? config[list] : undefined;
    const at = Array.isArray(items) ? items.indexOf(value) : -1;
    return at < 0 ? undefined : [list, at];
  }
  let at: unknown = config;
  for (const [length, key] of path.entries()) {
    if (!isRecord(at)) return length === 0 || at === undefined ? undefined : path.slice(0, length);
    at = Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at === undefined ? undefined : path;
}
