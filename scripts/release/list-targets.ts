import { targets } from "./targets.ts";

// Prints what build-all.sh needs of each target: name, system, end of the name of Node's download.
for (const { name, platform, arch, node } of targets)
  console.log([name, `${platform}-${arch}`, node].join(" "));
