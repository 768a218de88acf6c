import { isRecord } from "../base/text/record.ts";
import { positionOf, writtenAt, type ParsedFile } from "./files/config-file.ts";
import type { ConfigScope, LoadedConfig } from "./load.ts";
import { listsThatAddUp } from "./merge.ts";

/** One value that counts, and where it was written. Line and column count from 1. */
export interface ConfigValue {
  readonly path: readonly string[];
  readonly value: unknown;
  /** As it stands in the file, before anything was filled in. */
  readonly written: string | undefined;
  readonly source: string;
  readonly scope: ConfigScope;
  readonly line: number;
  readonly column: number;
}

type Layer = LoadedConfig["layers"][number];
type Path = readonly (string | number)[];

/** Every value of the configuration with the layer that it comes from. `files` are the layers' files by source. */
export function originsOf(
  { config, layers }: Pick<LoadedConfig, "config" | "layers">,
  files: ReadonlyMap<string, ParsedFile>,
): ConfigValue[] {
  return leavesOf(config, []).flatMap(({ path, value }) => {
    const found = originOf(path, value, layers);
    const file = found && files.get(found.layer.source);
    if (found === undefined || file === undefined) return [];
    const { source, scope } = found.layer;
    const position = positionOf(file, found.path);
    return [{ path, value, written: writtenAt(file, found.path), source, scope, ...position }];
  });
}

interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** Lists add up over the layers only where their items are told apart; an empty object is a value too. */
function leavesOf(value: unknown, path: readonly string[]): Leaf[] {
  const isSum = Array.isArray(value) && path.length === 1 && listsThatAddUp.has(path[0] ?? "");
  if (isSum) return value.flatMap((item: unknown, at) => leavesOf(item, [...path, String(at)]));
  if (!isRecord(value) || Object.keys(value).length === 0) return path.length === 0 ? [] : [{ path, value }];
  return Object.entries(value).flatMap(([key, item]) => leavesOf(item, [...path, key]));
}

interface Origin {
  readonly layer: Layer;
  /** Where in the layer's file the value stands. */
  readonly path: Path;
}

/** The highest layer that says something about the place: itself, or a short form around it ("bash": "ask"). */
function originOf(path: readonly string[], value: unknown, layers: readonly Layer[]): Origin | undefined {
  for (const layer of layers.toReversed()) {
    const found = placeIn(layer.value, path, value);
    if (found !== undefined) return { layer, path: found };
  }
  return undefined;
}

function placeIn(config: unknown, path: readonly string[], value: unknown): Path | undefined {
  const [list = "", ...rest] = path;
  if (listsThatAddUp.has(list) && rest.length === 1) {
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
