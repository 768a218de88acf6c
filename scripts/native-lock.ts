import { copyFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "rolldown";
import { toSlashes } from "../src/base/files/paths.ts";

const binding = fileURLToPath(new URL("native-lock-binding.cjs", import.meta.url));
/** Systems that the program supports. musl's loader accepts the part for glibc, which needs only its C library. */
const systems = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-arm64", "win32-x64"];

/** Bundles fs-native-extensions but for its native part. */
export const nativeLock: Plugin = {
  name: "native-lock",
  resolveId(id, importer = "") {
    return id === "./binding" && toSlashes(importer).includes("/fs-native-extensions/") ? binding : null;
  },
};

/** Copies the native parts for all systems: the package has them for phones and for another runtime too. */
export function copyNativeLocks(folder: string): void {
  const root = dirname(createRequire(import.meta.url).resolve("fs-native-extensions/package.json"));
  for (const system of systems)
    copyFileSync(
      join(root, "prebuilds", system, "fs-native-extensions.node"),
      join(folder, `fs-native-extensions-${system}.node`),
    );
}
