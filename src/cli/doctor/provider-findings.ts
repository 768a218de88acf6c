import { removeSecretForms } from "../../base/secrets/secret-forms.ts";
import type { ModelRef } from "../../message/message.ts";
import { formatModelRef, presets } from "../../model/catalog/catalog.ts";
import { apiPaths } from "../../model/catalog/check-api.ts";
import type { OpenModels, ProviderState, ProviderSummary } from "../../model/providers/providers.ts";
import { isEnabled } from "../../model/catalog/usable-providers.ts";
import type { Project } from "../../conversation/project.ts";
import type { Finding } from "./finding.ts";

/** Models named in one finding. */
const namedModels = 8;

/** Checks all usable providers in parallel. A problem is a todo if the chosen model needs the provider, else a note. */
export async function providerFindings({ models }: Project, isOffline: boolean): Promise<Finding[]> {
  const chosen = models.defaultModel();
  const ref = chosen.outcome === "found" ? chosen.model.ref : undefined;
  return Promise.all(
    models.providers().map(async (provider) => {
      const model = ref?.provider === provider.id ? ref : undefined;
      const found = describe(provider);
      if (isOffline) return { what: "Provider", found: `${found} (not asked)` };
      return {
        what: "Provider",
        ...judge(await models.check(provider.id, model), { provider, model, found }),
      };
    }),
  );
}

function describe({ id, baseURL, keyFrom }: ProviderSummary): string {
  const key = keyFrom === undefined ? "no key" : `key from ${keyFrom}`;
  return `${id} at ${removeSecretForms(baseURL)}, ${key}`;
}

interface CheckedProvider {
  readonly provider: ProviderSummary;
  /** The chosen model, if it belongs to this provider. */
  readonly model: ModelRef | undefined;
  readonly found: string;
}

function judge(state: ProviderState, { provider, model, found }: CheckedProvider): Omit<Finding, "what"> {
  switch (state.outcome) {
    case "answers":
      return judgeApi(state, { provider, model, found });
    case "unasked":
      return { found: `${found} (not asked: a command prints the key)` };
    case "failed": {
      const message = removeSecretForms(state.message);
      return { found, ...(model === undefined ? { note: message } : { todo: message }) };
    }
    case "lacks-model": {
      const names = state.models.slice(0, namedModels).join(", ");
      const more = state.models.length > namedModels ? ", …" : "";
      const lacks = `${provider.id} does not list the model ${model?.model}. It has ${names}${more}.`;
      // Hosted providers do not list all names of their models.
      const isHosted = !provider.local && presets.some(({ id }) => id === provider.id);
      if (isHosted) return { found, note: `${lacks} The model may still work.` };
      const pull = provider.id === "ollama" ? ` Get it with "ollama pull ${model?.model}", or` : "";
      return { found, todo: `${lacks}${pull} set "model" to one of these.` };
    }
  }
}

function judgeApi(
  { modelCount, api }: Extract<ProviderState, { outcome: "answers" }>,
  { provider, found }: CheckedProvider,
): Omit<Finding, "what"> {
  const lists = modelCount === 0 ? ", lists no models" : "";
  if (api === undefined) return { found: `${found}: answers${lists}` };
  const path = apiPaths[api.name];
  switch (api.check.outcome) {
    case "answers":
      return { found: `${found}: answers on ${path}${lists}` };
    case "failed":
      return { found, todo: `${path}: ${removeSecretForms(api.check.message)}` };
    case "missing": {
      const [other] = api.check.others;
      const change =
        other === undefined
          ? `Is provider.${provider.id}.options.baseURL right?`
          : `It answers on ${apiPaths[other]}: set "api": "${other}" in provider.${provider.id}.`;
      return { found, todo: `There is no ${path} at ${removeSecretForms(provider.baseURL)}. ${change}` };
    }
  }
}

/** Reports providers that are configured but not usable. */
export async function unusedFindings({ config, models }: Project): Promise<Finding[]> {
  const usable = new Set(models.providers().map(({ id }) => id));
  const unused = Object.keys(config.provider ?? {}).filter((id) => !usable.has(id) && isEnabled(id, config));
  return Promise.all(unused.map((id) => unusedProvider(id, models)));
}

/** Reports agents whose own model cannot be used. */
export function agentFindings({ agents, models }: Project): Finding[] {
  return [...agents.values()].flatMap(({ name, model }) => {
    if (model === undefined || models.find(model) !== undefined) return [];
    const found = `${name} wants the model ${formatModelRef(model)}, which cannot be used`;
    return [
      { what: "Agent", found, todo: `Configure the provider ${model.provider}, or another "model" for it.` },
    ];
  });
}

async function unusedProvider(id: string, models: OpenModels): Promise<Finding> {
  const state = await models.check(id);
  const note = state.outcome === "failed" ? state.message : undefined;
  return { what: "Provider", found: `${id} is configured and cannot be used`, ...(note && { note }) };
}
