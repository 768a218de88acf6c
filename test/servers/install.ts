import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listedServers, serversFolder } from "./listed-servers.ts";

// Installs the listed servers into a folder outside the repository, without their install scripts.

const dependencies = Object.fromEntries(listedServers.map(({ package: id, version }) => [id, version]));
mkdirSync(serversFolder, { recursive: true });
writeFileSync(
  join(serversFolder, "package.json"),
  JSON.stringify({ private: true, dependencies }, undefined, 2),
);
const flags = ["--ignore-scripts", "--no-audit", "--no-fund"];
execFileSync("npm", ["install", ...flags], { cwd: serversFolder, stdio: "inherit" });
console.log(`Installed ${listedServers.length} servers in ${serversFolder}.`);
