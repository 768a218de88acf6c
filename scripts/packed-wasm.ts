import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import type { Plugin } from "rolldown";

// The image library is 1.9 MB of WebAssembly, which compresses to a third: the package contains it compressed.

const name = "photon_rs_bg.wasm";
const reading = "require('fs').readFileSync(path)";

/** Lets the image library read its compressed WebAssembly. */
export const packedWasm: Plugin = {
  name: "packed-wasm",
  load: {
    filter: { id: /photon_rs\.js$/ },
    handler(id) {
      const code = readFileSync(id, "utf8");
      if (!code.includes(reading) || !code.includes(`'${name}'`))
        throw new Error(
          "the image library reads its WebAssembly in another way: change scripts/packed-wasm.ts",
        );
      const packed = code.replace(`'${name}'`, `'${name}.gz'`);
      return packed.replace(reading, `require('zlib').gunzipSync(${reading})`);
    },
  },
};

/** Writes the compressed WebAssembly into the built program. */
export function writePackedWasm(folder: string): void {
  const path = createRequire(import.meta.url).resolve(`@silvia-odwyer/photon-node/${name}`);
  writeFileSync(`${folder}/${name}.gz`, gzipSync(readFileSync(path), { level: 9 }));
}
