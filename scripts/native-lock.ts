import { fileURLToPath } from "node:url";
import type { Plugin } from "rolldown";

const binding = fileURLToPath(new URL("native-lock-binding.cjs", import.meta.url));

/** Bundles fs-native-extensions but for its native part, which is loaded from the package. */
export const nativeLock: Plugin = {
  name: "native-lock",
  resolveId(id, importer = "") {
    return id === "./binding" && importer.includes("/fs-native-extensions/") ? binding : null;
  },
};
