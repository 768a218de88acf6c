import { existsSync, renameSync, rmSync, utimesSync } from "node:fs";
import { build, type BuildOptions, type OutputOptions } from "rolldown";
import { toSlashes } from "../src/base/files/paths.ts";
import { lazySchemas, schemaLibrary } from "./lazy-schemas.ts";
import { leanConfigSchema } from "./lean-config-schema.ts";
import { leanSdk } from "./lean-sdk.ts";
import { Licenses } from "./licenses.ts";
import { copyNativeLocks, nativeLock } from "./native-lock.ts";
import { packedWasm, writePackedWasm } from "./packed-wasm.ts";
import { compressMaps, ownSourceMaps, withSourceMaps } from "./source-maps.ts";

/**
 * Returns false for modules that are left out unless something of them is used: Node's own, the protocol's library, which
 * builds hundreds of schemas when it loads, and the indexes of the library of schemas. Undefined for others: their
 * package.json says it.
 */
function hasEffects(id: string, isExternal: boolean): boolean | undefined {
  const path = toSlashes(id);
  const isOptional =
    isExternal ||
    path.includes("/@agentclientprotocol/sdk/") ||
    /\/zod\/v4\/(mini\/|(\w+\/)?index\.js$)/.test(path);
  return isOptional ? false : undefined;
}

// Bundles the program into dist/: a small first file, and the rest in parts that load when they are needed.
// The folder is replaced at once, so that a program that starts meanwhile finds a whole one.
const startedAt = new Date();
const fresh = `dist-new-${process.pid}`;
const licenses = new Licenses();
const bundled = {
  plugins: [lazySchemas(), leanConfigSchema, leanSdk, nativeLock, packedWasm, ownSourceMaps, licenses.plugin],
  platform: "node",
  external: ["@vscode/ripgrep"],
  moduleTypes: { ".md": "text", ".json": "json" },
  // jsonc-parser's CommonJS build cannot be bundled; its ES modules can.
  resolve: { mainFields: ["module", "main"] },
  // gray-matter can evaluate front matter; the engines that do are switched off where it is called.
  checks: { eval: false },
  treeshake: { moduleSideEffects: hasEffects },
  preserveEntrySignatures: "allow-extension",
  logLevel: "warn",
} satisfies BuildOptions;
const output: OutputOptions = {
  dir: fresh,
  format: "cjs",
  // import() of Node's own modules reads each of their values, some of which load Node's whole fetch.
  dynamicImportInCjs: false,
  // V8 needs two bytes for each character of a source that has a single "…".
  charset: "ascii",
  minify: true,
  ...withSourceMaps,
  entryFileNames: "[name].cjs",
  chunkFileNames: "[name]-[hash].cjs",
};
const program = { ...bundled, input: { main: "src/cli/main.ts", [schemaLibrary]: schemaLibrary } };
await build({ ...program, output });
// What runs beside the program shares nothing with it, so that each loads what it needs and no more: the threads that
// unpack images and convert pages, and the process of authors' modules.
const workers = {
  "image-worker": "src/tool/image/image-worker.ts",
  "page-worker": "src/tool/web/page-worker.ts",
};
for (const [name, path] of Object.entries(workers))
  await build({
    ...bundled,
    input: { [name]: path },
    output: { ...output, chunkFileNames: "worker-[name]-[hash].cjs", cleanDir: false },
  });
await build({
  input: {
    "plugin-host": "src/plugin/host.ts",
    "plugin-api": "src/plugin/author-api.ts",
    "plugin-zod": "src/plugin/zod.ts",
  },
  platform: "node",
  plugins: [licenses.plugin],
  output: {
    dir: fresh,
    format: "esm",
    minify: true,
    chunkFileNames: "plugin-[name]-[hash].js",
    cleanDir: false,
  },
  logLevel: "warn",
});
licenses.write(`${fresh}/THIRD-PARTY-LICENSES.txt`);
copyNativeLocks(fresh);
writePackedWasm(fresh);
compressMaps(fresh);
// isBundleStale() compares this time with the sources.
utimesSync(fresh, startedAt, startedAt);
const old = `dist-old-${process.pid}`;
if (existsSync("dist")) renameSync("dist", old);
renameSync(fresh, "dist");
rmSync(old, { recursive: true, force: true });
