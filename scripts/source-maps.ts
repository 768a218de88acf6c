import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { OutputOptions, Plugin } from "rolldown";
import { toSlashes } from "../src/base/files/paths.ts";

/**
 * Source maps for the log's stacks. The comment that names a map is left out, so that Node never reads one by itself;
 * texts of the sources are left out for their size.
 */
export const withSourceMaps = {
  sourcemap: "hidden",
  sourcemapExcludeSources: true,
} satisfies OutputOptions;

/** Drops the maps of files that contain libraries only. */
export const ownSourceMaps: Plugin = {
  name: "own-source-maps",
  generateBundle(_, bundle) {
    for (const part of Object.values(bundle)) {
      if (part.type !== "chunk") continue;
      if (part.moduleIds.some((id) => !toSlashes(id).includes("/node_modules/"))) continue;
      delete bundle[`${part.fileName}.map`];
    }
  },
};

/** Compresses the maps of a built folder, without names: they are a third of its size, and only places are read. */
export function compressMaps(folder: string): void {
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".map"))) {
    const path = join(folder, name);
    const map: object = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(`${path}.gz`, gzipSync(JSON.stringify({ ...map, names: [] })));
    rmSync(path);
  }
}
