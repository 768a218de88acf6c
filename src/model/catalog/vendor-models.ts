import type { Catalog, KnownModel } from "./known-models.ts";

/** Vendors of closed models, whose window and efforts are the same at every server. */
const vendors = ["openai", "anthropic", "google", "xai"];

/** Names of their models. Others are not looked up: reading the catalog takes time at the start. */
const vendorNames = /^(gpt-|chatgpt-|codex-|claude-|gemini-|grok-|o\d)/;

/** Finds the vendor's data of a model that a gateway serves, by the gateway's id of it. */
export function findVendorModel(catalog: Catalog, id: string): KnownModel | undefined {
  const name = normalizeId(id);
  if (!vendorNames.test(name)) return undefined;
  for (const vendor of vendors) {
    const found = catalog.modelsOf(vendor).find((model) => normalizeId(model.id) === name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Removes what gateways add to a model's id: the vendor and region before it, and the date and revision after it.
 * `us.anthropic.claude-opus-4-5-20251101-v1:0` and `anthropic/claude-opus-4.5` become `claude-opus-4-5`.
 */
function normalizeId(id: string): string {
  return id
    .toLowerCase()
    .replace(/^.*\//, "")
    .replace(/^([a-z]{2,6}\.)?(anthropic|openai|google|xai)\./, "")
    .replace(/-v\d+(:\d+)?$/, "")
    .replace(/[@-](\d{8}|\d{4}-\d\d-\d\d|latest|default)$/, "")
    .replaceAll(".", "-");
}
