import { join } from "node:path";
import type { ModelServer } from "./model-server.ts";
import {
  anthropicPrice,
  type Bill,
  type CachePrice,
  computeCost,
  openaiPrice,
  sumBills,
  countTokensIn,
} from "./prompt-cache.ts";
import * as reply from "./reply.ts";

/** A model and an API whose prompts are priced. */
export interface PricedWay {
  readonly name: string;
  readonly api: "chat" | "responses" | "messages";
  readonly model: string;
  readonly price: CachePrice;
}

export const pricedWays: readonly PricedWay[] = [
  { name: "GPT through chat completions", api: "chat", model: "gpt-5.1", price: openaiPrice },
  { name: "GPT through Responses", api: "responses", model: "gpt-5.1", price: openaiPrice },
  { name: "Claude through a gateway", api: "chat", model: "claude-sonnet-4-5", price: anthropicPrice },
  { name: "Claude through Messages", api: "messages", model: "claude-sonnet-4-5", price: anthropicPrice },
];

/** The configuration with only this model. */
export function configFor({ api, model }: PricedWay, baseURL: string) {
  const models = {
    [model]: { limit: { context: 200_000, output: 8_000 }, tool_call: true, reasoning: true },
  };
  return {
    model: `gateway/${model}`,
    // An installed language server would add a question.
    lsp: false,
    provider: { gateway: { api, options: { baseURL, apiKey: "test-key" }, models } },
  };
}

const linesPerFile = 60;
const line = (file: number, at: number): string =>
  `export const value_${file}_${at} = compute(${at}, "a line of a file that is read", { scale: ${file * at} });\n`;

export const pricedFiles = (count: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, file) => [
      `src/file-${file}.ts`,
      Array.from({ length: linesPerFile }, (__, at) => line(file, at)).join(""),
    ]),
  );

const readOf = (folder: string, file: number) =>
  reply.callScript("read", { filePath: join(folder, `src/file-${file}.ts`) });

/** Plays two turns; in the first one each step reads this number of files. */
export async function playReads(
  model: ModelServer,
  folder: string,
  ask: (text: string) => Promise<unknown>,
  readsOfSteps: readonly number[],
): Promise<void> {
  model.countTokens();
  let file = 0;
  for (const reads of readsOfSteps) {
    const calls = Array.from({ length: reads }, () => readOf(folder, file++));
    model.reply(reply.think("The next files tell more."), reply.together(...calls));
  }
  model.reply("I read all of them.").reply("You are welcome.");
  await ask("Read the files and say what they do.");
  await ask("Thanks. Is anything unclear?");
}

/**
 * Returns the prices of the requests so far, those for a title last. Throws if a request used another API.
 */
export function collectBills({ requests, titleRequests }: ModelServer, { api, name }: PricedWay): Bill[] {
  const all = [...requests, ...titleRequests];
  if (all.some((request) => request.api !== api)) throw new Error(`A request came another way than ${name}.`);
  return all.map(({ bill }) => bill);
}

/** The prompt costs of a session. */
export interface SessionPrice {
  readonly calls: number;
  readonly tokens: number;
  /** The share of tokens that were read from the cache. */
  readonly cachedShare: number;
  /** Cost in units of fresh input tokens. */
  readonly cost: number;
  /** The cost, and that of the same prompts without a cache. */
  readonly shareOfFull: number;
}

export function computePrice(bills: readonly Bill[], price: CachePrice): SessionPrice {
  const sum = sumBills(bills);
  const tokens = countTokensIn(sum);
  const cost = computeCost(sum, price);
  return { calls: bills.length, tokens, cachedShare: sum.read / tokens, cost, shareOfFull: cost / tokens };
}
