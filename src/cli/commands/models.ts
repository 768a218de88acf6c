import type { MissingFeature } from "../../model/catalog/missing-features.ts";
import type { Model } from "../../model/model.ts";
import type { Call } from "../command-line/command.ts";
import { discoverModels } from "./discover.ts";
import { openLocalApp } from "../local-app.ts";
import { printJson, printTable, writeNotice, writeToStderr } from "../terminal/output.ts";

/** Prints the usable models. With --discover, first asks the providers for their models. */
export async function models(call: Call): Promise<number> {
  const [provider] = call.operands;
  const { app, project: before } = await openLocalApp(call.text("cwd"));
  const areListed = !call.has("discover") || (await discoverModels(before, provider));
  const project = call.has("discover") ? (await openLocalApp(call.text("cwd"))).project : before;
  await app.close();
  const all = project.models.list();
  const known = all.filter(({ ref }) => provider === undefined || ref.provider === provider);
  const described = known.map((model) => ({ model, missing: project.models.missingFeatures(model) }));
  if (call.has("json")) await printJson(described.map(toJson));
  else {
    await printTable(columns, described.map(toRow));
    for (const line of groupAdvice(described)) writeToStderr(line);
  }
  if (known.length > 0) return areListed ? 0 : 1;
  const chosen = project.models.defaultModel();
  if (all.length > 0)
    writeNotice(`the provider ${provider} has no models here; providers with models: ${listProviders(all)}`);
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
  { name: "runs without" },
];

/** A model and the features that it runs without. */
interface Described {
  readonly model: Model;
  readonly missing: readonly MissingFeature[];
}

/** Maximum number of models named per line of advice. */
const namedModels = 3;

/** Returns one line per feature and advice, with the models that it applies to. */
function groupAdvice(described: readonly Described[]): string[] {
  const groups = new Map<string, { missing: MissingFeature; names: string[] }>();
  for (const { model, missing } of described)
    for (const one of missing) {
      const key = `${one.feature} ${one.advice}`;
      const group = groups.get(key) ?? { missing: one, names: [] };
      group.names.push(`${model.ref.provider}/${model.ref.model}`);
      groups.set(key, group);
    }
  return [...groups.values()].map(({ missing: { feature, advice }, names }) => {
    const more = names.length - namedModels;
    const listed = names.slice(0, namedModels).join(", ") + (more > 0 ? ` and ${more} more` : "");
    return `Without ${feature}: ${listed}. ${advice}`;
  });
}

function toRow({ model: { ref, name, limit, cost, abilities }, missing }: Described): string[] {
  const takes = [abilities.images && "images", abilities.pdf && "pdf", abilities.reasoning && "reasons"];
  return [
    `${ref.provider}/${ref.model}`,
    name,
    formatTokens(limit.context),
    formatTokens(limit.output),
    cost === undefined ? "" : String(cost.input),
    cost === undefined ? "" : String(cost.output),
    takes.filter((ability) => ability !== false).join(", "),
    missing.map(({ feature }) => feature).join(", "),
  ];
}

function toJson({ model, missing }: Described) {
  const { ref, name, family, api, limit, cost, abilities, variants, defaultEffort, cache } = model;
  const id = `${ref.provider}/${ref.model}`;
  const without = missing.map(({ feature }) => feature);
  return {
    id,
    ...ref,
    name,
    family,
    api,
    limit,
    cost,
    abilities,
    variants,
    defaultEffort,
    cache,
    without,
  };
}

function formatTokens(tokens: number | undefined): string {
  return tokens === undefined ? "" : tokens < 1000 ? String(tokens) : `${Math.round(tokens / 1000)}k`;
}

function listProviders(models: readonly Model[]): string {
  return [...new Set(models.map(({ ref }) => ref.provider))].join(", ");
}
