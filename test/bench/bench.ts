import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { commandRows } from "./commands.ts";
import { growthRows } from "./growth.ts";
import { priceRows } from "./prices.ts";
import { sandboxRows } from "./sandbox.ts";
import { Setting } from "./setting.ts";
import { startRows } from "./start.ts";
import { streamingRows } from "./streaming.ts";
import { medianRows, printComparison, printTable, type Row } from "./table.ts";
import { toolRows } from "./tools.ts";

// Measures the program and, in the same run, the minimum that could do the same work. Arguments choose parts.
// `--short` only shows that the bench runs. `--against FOLDER` also measures the build in another checkout:
// both take turns, `--rounds` times (3 by default), and the medians are printed side by side.
const parts = {
  start: startRows,
  streaming: streamingRows,
  tools: toolRows,
  growth: growthRows,
  prices: priceRows,
  commands: commandRows,
  sandbox: sandboxRows,
};
const { values, positionals } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    against: { type: "string" },
    rounds: { type: "string" },
  },
  allowPositionals: true,
});
const own = join(import.meta.dirname, "../..");
const other = values.against === undefined ? undefined : resolve(values.against);
const builds = other === undefined ? [own] : [other, own];
const rounds = Number(values.rounds ?? (other === undefined ? 1 : 3));

// These measure the sources of this checkout, or features that an older build may lack.
const ownParts = new Set(["prices", "commands", "sandbox"]);
const isUsual = (name: string) => other === undefined || !ownParts.has(name);
const chosen = Object.entries(parts).filter(([name]) =>
  positionals.length === 0 ? isUsual(name) : positionals.includes(name),
);
const measured = builds.map((build) => ({ build, runs: new Array<Row[]>() }));
for (const [, measure] of chosen) {
  for (let round = 0; round < rounds; round++) {
    for (const { build, runs } of measured) {
      const setting = await Setting.open(values.short, build);
      try {
        runs.push(await measure(setting));
      } finally {
        setting.close();
      }
    }
  }
}

console.log(`Node ${process.versions.node}`);
const rowsOf = (build: string) =>
  medianRows(measured.flatMap((one) => (one.build === build ? one.runs : [])));
if (other === undefined) printTable(rowsOf(own));
else printComparison(rowsOf(own), rowsOf(other));
