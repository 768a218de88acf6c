import { growthRows } from "./growth.ts";
import { Setting } from "./setting.ts";
import { startRows } from "./start.ts";
import { streamingRows } from "./streaming.ts";
import { printTable, type Row } from "./table.ts";
import { toolRows } from "./tools.ts";

// Figures of the program beside the least that could do the same, measured in the same run. `--short` only shows that
// it runs; names of parts choose some of them.
const parts = { start: startRows, streaming: streamingRows, tools: toolRows, growth: growthRows };
const chosen = process.argv.slice(2).filter((arg) => !arg.startsWith("--"));

const setting = await Setting.open(process.argv.includes("--short"));
const rows: Row[] = [];
try {
  for (const [name, measure] of Object.entries(parts)) {
    if (chosen.length === 0 || chosen.includes(name)) rows.push(...(await measure(setting)));
  }
} finally {
  setting.close();
}
console.log(`Node ${process.versions.node}`);
printTable(rows);
