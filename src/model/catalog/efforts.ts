import { isRecord } from "../../base/text/record.ts";
import type { Api } from "../../config/api.ts";
import type { Model } from "../model.ts";
import type { KnownModel } from "./known-models.ts";

/** Reasoning efforts of all vendors, lowest first. */
const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** The effort of models that think, if the user chose none. */
const usualEffort = "medium";

export const isEffort = (name: string): boolean => efforts.includes(name);

/** Returns the effort to use if the user chose none; undefined to leave it to the server. */
export function defaultEffort(
  known: KnownModel | undefined,
  variants: readonly string[],
): string | undefined {
  if (known?.variants === undefined) return undefined;
  return [usualEffort, known.defaultEffort].find((name) => name !== undefined && variants.includes(name));
}

/**
 * Returns the effort of the model that is nearest to the chosen one.
 * - Of two equally near efforts, returns the lower one.
 * - Returns `none` only if it was chosen.
 * - Returns undefined if the model has no comparable effort.
 */
export function nearestEffort(variants: readonly string[], chosen: string): string | undefined {
  if (variants.includes(chosen)) return chosen;
  const rank = efforts.indexOf(chosen);
  if (rank < 0) return undefined;
  const distance = (name: string) => Math.abs(efforts.indexOf(name) - rank);
  const comparable = variants.filter((name) => isEffort(name) && name !== "none");
  return comparable
    .toSorted((one, other) => efforts.indexOf(one) - efforts.indexOf(other))
    .reduce<string | undefined>(
      (nearest, name) => (nearest === undefined || distance(name) < distance(nearest) ? name : nearest),
      undefined,
    );
}

/** Request parameters that say how much a model thinks. */
const effortParameters = [
  "reasoningEffort",
  "reasoning_effort",
  "reasoning",
  "effort",
  "thinking",
  "thinking_budget",
  "enable_thinking",
  "chat_template_kwargs",
];

/** Returns whether provider options say how much the model thinks. */
export function namesEffort(options: Readonly<Record<string, unknown>> = {}): boolean {
  return effortParameters.some((name) => options[name] !== undefined);
}

/** Returns provider options without those that set the reasoning effort. */
export function omitEffort(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !effortParameters.includes(name)));
}

/** For the other APIs, replaces an effort that is written as in chat completions by the SDK's option. */
export function convertEffort(
  options: Readonly<Record<string, unknown>>,
  api: Api,
): Readonly<Record<string, unknown>> {
  const { reasoning_effort: effort, reasoning, ...others } = options;
  const nested = isRecord(reasoning) ? reasoning.effort : undefined;
  const named = effort ?? nested;
  if (api === "chat" || typeof named !== "string") return options;
  return { reasoningEffort: named, ...others };
}

/** Error message for an effort that the model does not have; lists its efforts. */
export function describeMissingEffort({ ref, variants, lostOverChat }: Model, effort: string): string {
  const name = `${ref.provider}/${ref.model}`;
  if (variants.length > 0)
    return `The model ${name} has no effort "${effort}"; it has ${variants.join(", ")}.`;
  const why =
    lostOverChat?.includes("thinking") === true
      ? "does not think with tools over this API"
      : "has no efforts";
  return `The model ${name} ${why}, so it cannot have the effort "${effort}".`;
}

/** Returns the model without a default effort, for small requests that need no thinking. */
export function omitDefaultEffort(model: Model): Model {
  const { defaultEffort: _, ...rest } = model;
  return rest;
}
