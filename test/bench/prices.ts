import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startModelServer } from "../support/model/model-server.ts";
import {
  collectBills,
  configFor,
  playReads,
  pricedFiles,
  type PricedWay,
  pricedWays,
  computePrice,
} from "../support/model/priced-session.ts";
import type { Setting } from "./setting.ts";
import type { Row } from "./table.ts";

const fileCount = 20;

/** Measures the prompt cost of a session with 20 reads, with each vendor's cache. */
export async function priceRows(setting: Setting): Promise<Row[]> {
  for (const [path, text] of Object.entries(pricedFiles(fileCount))) {
    const file = join(setting.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const rows: Row[] = [];
  for (const way of pricedWays) rows.push(...(await rowsOf(setting, way)));
  return rows;
}

async function rowsOf(setting: Setting, way: PricedWay): Promise<Row[]> {
  const model = await startModelServer();
  const agent = setting.startWith(configFor(way, model.url));
  try {
    await agent.initialize();
    const session = await agent.newSession(setting.folder);
    const reads = Array.from({ length: setting.isShort ? 2 : fileCount }, () => 1);
    await playReads(model, setting.folder, (text) => agent.prompt(session, text), reads);
    await model.titleRequest(1);
    const { calls, tokens, cost, cachedShare } = computePrice(collectBills(model, way), way.price);
    const name = `${calls} calls, ${way.name}`;
    return [
      { name: `${name}: price`, own: cost, unit: "tokens", floor: tokens, beside: "without a cache" },
      {
        name: `${name}: cached`,
        own: 100 * cachedShare,
        unit: "%",
        ...(!setting.isShort && { target: { least: 80 } }),
      },
    ];
  } finally {
    await agent.close();
    await model.close();
  }
}
