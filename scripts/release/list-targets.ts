import { targets } from "./targets.ts";

// Prints what build-all.sh needs of each target: name, system, way to get Node, its source.
for (const { name, platform, arch, node } of targets) {
  const [way, source] = "alpine" in node ? ["alpine", node.alpine] : ["download", node.download];
  console.log([name, `${platform}-${arch}`, way, source].join(" "));
}
