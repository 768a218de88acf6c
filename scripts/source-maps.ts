import type { OutputOptions, Plugin } from "rolldown";

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
      if (part.type !== "chunk" || part.moduleIds.some((id) => !id.includes("/node_modules/"))) continue;
      delete bundle[`${part.fileName}.map`];
    }
  },
};
