import { readFile } from "node:fs/promises";
import { presets } from "../src/model/catalog/catalog.ts";
import { type CatalogFile, catalogSchema } from "../src/model/catalog/known-models.ts";

type Entry = CatalogFile["models"][string][number];

/** The catalog of models as Markdown for people, provider by provider. */
export async function modelTable(): Promise<string> {
  const { date, models } = catalogSchema.parse(JSON.parse(await readFile("catalog/models.json", "utf8")));
  const opening = `Looked up on ${date}; \`catalog/models.json\` names the page of each figure. ⚠ marks figures that no page of the provider confirms, – unknown ones. Context and output are thousands of tokens, prices US dollars per million tokens of input / output; ✓ marks the default model. Thinking lists the efforts; the documented default of the vendor is bold.`;
  return [opening, ...presets.map((preset) => sectionOf(preset, models[preset.id] ?? []))].join("\n\n");
}

function sectionOf(preset: (typeof presets)[number], models: readonly Entry[]): string {
  const keys = preset.keyVariables.map((name) => `\`${name}\``).join(" or ");
  const named = preset.onlyWhereNamed ? `; only where the configuration names \`${preset.id}\`` : "";
  const key = preset.local ? "no key" : `key in ${keys}${named}`;
  const api = preset.api === undefined ? "chat" : `[${preset.api.default}](${preset.api.source})`;
  const heading = `### ${preset.name}\n\n\`${preset.id}\` at ${preset.baseURL}; ${key}; API: ${api}. [Its documentation](${preset.docs})`;
  if (models.length === 0) return heading;
  const head =
    "| model | context | output | price | takes | thinking |\n| --- | --- | --- | --- | --- | --- |";
  return `${heading}\n\n${[head, ...models.map((model) => rowOf(model, preset.defaultModel))].join("\n")}`;
}

function rowOf(model: Entry, usual: string | undefined): string {
  const { id, context, output, cost, takes, reasoning, unconfirmed = [] } = model;
  const { variants, defaultEffort } = model;
  const doubt = (figure: (typeof unconfirmed)[number], text: string) =>
    text !== "–" && unconfirmed.includes(figure) ? `${text} ⚠` : text;
  const price =
    cost === undefined ? "–" : `${cost.input} / ${cost.output}${cost.over ? ", more for long inputs" : ""}`;
  const efforts = variants?.map((effort) => (effort === defaultEffort ? `**${effort}**` : effort)).join(", ");
  const thinking = efforts ?? (reasoning ? "yes" : "–");
  return `| ${[
    `\`${id}\`${id === usual ? " ✓" : ""}`,
    doubt("limits", thousands(context)),
    doubt("limits", thousands(output)),
    doubt("cost", price),
    doubt("abilities", ["text", ...(takes ?? [])].join(", ")),
    doubt("efforts", thinking),
  ].join(" | ")} |`;
}

const thousands = (tokens: number | undefined): string =>
  tokens === undefined ? "–" : String(Math.round(tokens / 1_000));
