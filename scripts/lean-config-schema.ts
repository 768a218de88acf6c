import type { Plugin } from "rolldown";

/** Bundles the schema of the configuration without descriptions, which only editors read: each session loads it. */
export const leanConfigSchema: Plugin = {
  name: "lean-config-schema",
  transform: {
    filter: { id: /[\\/]schema[\\/]config\.schema\.json$/ },
    handler: (code) => ({ code: JSON.stringify(JSON.parse(code, omitDescription)), map: null }),
  },
};

/** Settings may be named "description", whose value is a schema. */
function omitDescription(key: string, value: unknown): unknown {
  return key === "description" && typeof value === "string" ? undefined : value;
}
