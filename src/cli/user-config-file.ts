import { existsSync } from "node:fs";
import { join } from "node:path";

/** Returns the user's existing configuration file in a folder, else the default path. */
export function findUserConfigFile(folder: string): string {
  const names = ["fairlead.jsonc", "fairlead.json", "config.json"].map((name) => join(folder, name));
  return names.find((path) => existsSync(path)) ?? join(folder, "fairlead.json");
}
