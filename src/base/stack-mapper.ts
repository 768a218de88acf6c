import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join, sep } from "node:path";
import { gunzipSync } from "node:zlib";

/** Maximum number of remembered positions. An error that repeats does not read its maps again. */
const positionLimit = 500;

/** A position in a bundled file: file name, line and column, both counted from 1. */
const positionPattern = /^([\w.-]+):(\d+):(\d+)/;

/**
 * Returns a function that replaces positions in the bundled files of a folder with positions in the sources. Reads the
 * compressed source maps next to the files; positions in files without a map stay.
 */
export function createStackMapper(folder: string): (stack: string) => string {
  const positions = new Map<string, string>();
  return (stack) => {
    const maps = new Map<string, SourceMap | undefined>();
    const [start = "", ...rest] = stack.split(folder + sep);
    const mapped = rest.map((text) => {
      const [position, name = "", line, column] = positionPattern.exec(text) ?? [];
      if (position === undefined) return folder + sep + text;
      const known = positions.get(position);
      if (known !== undefined) return known + text.slice(position.length);
      if (!maps.has(name)) maps.set(name, readMap(join(folder, `${name}.map.gz`)));
      const source = findSource(maps.get(name), Number(line), Number(column));
      const found = source ?? folder + sep + position;
      if (positions.size < positionLimit) positions.set(position, found);
      return found + text.slice(position.length);
    });
    return start + mapped.join("");
  };
}

function readMap(path: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(gunzipSync(readFileSync(path)).toString()));
  } catch {
    return undefined;
  }
}

/** Returns `src/folder/file.ts:line:column`. Maps count lines and columns from 0. */
function findSource(map: SourceMap | undefined, line: number, column: number): string | undefined {
  const entry = map?.findEntry(line - 1, column - 1);
  if (entry === undefined || !("originalSource" in entry)) return undefined;
  const { originalSource, originalLine, originalColumn } = entry;
  return `${originalSource.replace(/^(\.\.\/)+/, "")}:${originalLine + 1}:${originalColumn + 1}`;
}
