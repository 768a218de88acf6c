import { families, type Family } from "../model.ts";

/** Models under this size get the prompt and the tools for small models. */
const smallLimit = 40e9;

/** Models whose names contain no size, but which are all small. */
const smallNames = /gemma|(^|[/-])phi-?\d|ministral|devstral-small|smollm|granite-[34]/;

/**
 * Returns the family of a model's name in lower case; a family's own name is that family. `parameters` is the size that a
 * server reports.
 */
export function detectFamily(name: string, parameters?: number): Family {
  const named = families.find((family) => family === name);
  if (named !== undefined) return named;
  if (name.includes("claude")) return "claude";
  if (name.includes("codex")) return "codex";
  if (name.includes("gemini")) return "gemini";
  if (/(^|\/)(gpt|o[134](-|$)|chatgpt)/.test(name) && !/gpt-(3|4\.1|oss)/.test(name)) return "gpt";
  return isSmall(name, parameters) ? "small" : "open";
}

function isSmall(name: string, parameters: number | undefined): boolean {
  const size = parameters ?? parseSize(name);
  return size === undefined ? smallNames.test(name) : size < smallLimit;
}

/** A number of billions: "30b", "e4b", "0.6b", and "8x7b" or "17b-16e" with experts. */
const sizePattern = /(?<![a-z0-9.])(?:(\d+)x)?e?(\d+(?:\.\d+)?)b(?:-(\d+)e)?(?![a-z0-9])/g;

/** Returns the number of parameters in a name such as "qwen3-30b-a3b"; undefined if it contains none. */
function parseSize(name: string): number | undefined {
  const sizes = [...name.matchAll(sizePattern)].map(
    ([, models = "1", billions, experts = "1"]) => Number(models) * Number(billions) * Number(experts) * 1e9,
  );
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

/** Parses a size that a server reports: a number of parameters, or a text such as "8.2B" or "567M". */
export function parseParameters(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) && value > 0 ? value : undefined;
  const match = typeof value === "string" ? /^(\d+(?:\.\d+)?) ?([BM])$/i.exec(value) : null;
  if (match === null) return undefined;
  return Math.round(Number(match[1]) * (match[2]?.toUpperCase() === "B" ? 1e9 : 1e6));
}
