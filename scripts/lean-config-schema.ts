import type { Plugin } from "rolldown";

/** Bundles the schema of the configuration without descriptions, which only editors read: each session loads it. */
export const leanConfigSchema: Plugin = {
  name: "lean-config-schema",
  transform: {
    filter: { id: /[\\/](?:schema[\\/]config\.schema\.json|src[\\/]config[\\/]schema\.ts)$/ },
    handler: (code, id) => ({
      code: id.endsWith(".json") ? withoutInJson(code) : withoutInCode(code),
      map: null,
    }),
  },
};

const withoutInJson = (code: string): string => JSON.stringify(JSON.parse(code, omitDescription));

/** Settings may be named "description", whose value is a schema. */
function omitDescription(key: string, value: unknown): unknown {
  return key === "description" && typeof value === "string" ? undefined : value;
}

/** Keeps the line breaks, so that positions in stacks stay right. */
function withoutInCode(code: string): string {
  const calls = /\.describe\(\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*,?\s*\)/g;
  return code.replaceAll(calls, (call) => "\n".repeat(call.split("\n").length - 1));
}
