import { join } from "node:path";
import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("../../../node_modules", import.meta.url));

/**
 * The configuration of the real TypeScript server, with the compiler of these tests, because the repositories
 * have none.
 */
export const typescriptServer = {
  command: [process.execPath, join(packages, "typescript-language-server/lib/cli.mjs"), "--stdio"],
  extensions: [".ts"],
  initialization: {
    disableAutomaticTypingAcquisition: true,
    tsserver: { path: join(packages, "typescript-classic/lib/tsserver.js") },
  },
};
