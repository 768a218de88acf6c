import type { Model } from "../../model/model.ts";
import type { Call } from "../command-line/command.ts";
import { discoverModels } from "./discover.ts";
import { openLocalApp } from "../local-app.ts";
import { printJson, printTable, writeNotice } from "../terminal/output.ts";

/** Prints the usable models. With --discover, first asks the providers for their models. */
export async function models(call: Call): Promise<number> {
  const [provider] = call.operands;
  const { app, project: before } = await openLocalApp(call.text("cwd"));
  const areListed = !call.has("discover") || (await discoverModels(before, provider));
  const project = call.has("discover") ? (await openLocalApp(call.text("cwd"))).project : before;
  await app.close();
  const all = project.models.list();
  const known = all.filter(({ ref }) => provider === undefined || ref.provider === provider);
  if (call.has("json")) await printJson(known.map(toJson));
  else await printTable(columns, known.map(toRow));
  if (known.length > 0) return areListed ? 0 : 1;
  const chosen = project.models.defaultModel();
  if (all.length > 0)
    writeNotice(`the provider ${provider} has no models here; there are ${listProviders(all)}`);
  else writeNotice(chosen.outcome === "none" ? chosen.error.message : "No model is listed.");
  return 1;
}

const columns = [
  { name: "model" },
  { name: "name" },
  { name: "context", right: true },
  { name: "output", right: true },
  { name: "$ in", right: true },
  { name: "$ out", right: true },
  { name: "takes" },
];

function toRow({ ref, name, limit, cost, abilities }: Model): string[] {
  const takes = [abilities.images && "images", abilities.pdf && "pdf", abilities.reasoning && "reasons"];
  return [
    `${ref.provider}/${ref.model}`,
    name,
    formatTokens(limit.context),
    formatTokens(limit.output),
    cost === undefined ? "" : String(cost.input),
    cost === undefined ? "" : String(cost.output),
    takes.filter((ability) => ability !== false).join(", "),
  ];
}

function toJson({ ref, name, family, limit, cost, abilities, variants }: Model) {
  return { id: `${ref.provider}/${ref.model}`, ...ref, name, family, limit, cost, abilities, variants };
}

function formatTokens(tokens: number | undefined): string {
  return tokens === undefined ? "" : tokens < 1000 ? String(tokens) : `${Math.round(tokens / 1000)}k`;
}

function listProviders(models: readonly Model[]): string {
  return [...new Set(models.map(({ ref }) => ref.provider))].join(", ");
}
