import { fileURLToPath } from "node:url";
import type { Plugin, PluginContext } from "rolldown";
import { toSlashes } from "../src/base/files/paths.ts";

const headers = fileURLToPath(new URL("lean-sdk-headers.js", import.meta.url));

const zod = fileURLToPath(new URL("lean-sdk-zod.js", import.meta.url));
const gateway = fileURLToPath(new URL("lean-sdk-gateway.js", import.meta.url));
const mcpShims = fileURLToPath(new URL("lean-sdk-mcp.js", import.meta.url));
const lazy = fileURLToPath(new URL("lazy-schemas-runtime.js", import.meta.url));

const packages = /\/node_modules\/(ai|@ai-sdk\/[^/]+)\//;

/**
 * Removes unused code of the model library: its packages declare no side effects, but their top-level calls look like
 * some to the bundler. The remaining schemas and their library load when an answer is checked, after the request is
 * sent. `Headers` is replaced because Node's loads its whole `fetch`; the library's default provider is removed.
 */
export const leanSdk: Plugin = {
  name: "lean-sdk",
  resolveId(id, importer = "") {
    if (id === "@ai-sdk/gateway") return gateway;
    if (id === "@modelcontextprotocol/client/_shims") return mcpShims;
    return toSlashes(importer).includes("/@ai-sdk/") && id.startsWith("zod/") ? zod : null;
  },
  transform(code, id) {
    const path = toSlashes(id);
    if (!packages.test(path)) return null;
    const values = this.parse(code).body.flatMap(valuesIn);
    const text = values.reduceRight((before, { start, end, isSchema }) => {
      const value = before.slice(start, end);
      const built = isSchema ? `lazily(() => (${value}))` : value;
      return `${before.slice(0, start)}/* @__PURE__ */ ${built}${before.slice(end)}`;
    }, code);
    const given = [`import { lazily } from ${JSON.stringify(lazy)};`];
    if (path.includes("/provider-utils/")) given.push(`import { Headers } from ${JSON.stringify(headers)};`);
    return { code: given.join("") + text, map: null };
  },
};

type Statement = ReturnType<PluginContext["parse"]>["body"][number];
type Declared = Extract<Statement, { type: "VariableDeclaration" }>["declarations"][number];

interface Value {
  start: number;
  end: number;
  isSchema: boolean;
}

/** Returns the values that a module creates when it loads, and the schemas that its functions create. */
function valuesIn(statement: Statement): Value[] {
  return statement.type === "VariableDeclaration" ? statement.declarations.flatMap(valuesOf) : [];
}

function valuesOf({ id, init }: Declared): Value[] {
  const isSchema = id.type === "Identifier" && /(Schema|Options)(\$\d+)?$/.test(id.name);
  switch (init?.type) {
    case "CallExpression":
    case "NewExpression": {
      const isLazy = init.callee.type === "Identifier" && init.callee.name === "lazySchema";
      return [{ start: init.start, end: init.end, isSchema: isSchema && !isLazy }];
    }
    case "ArrowFunctionExpression": {
      const { type, start, end } = init.body;
      return isSchema && type === "CallExpression" ? [{ start, end, isSchema }] : [];
    }
    case "ObjectExpression":
      return init.properties.flatMap((property) => {
        if (property.type !== "Property" || property.value.type !== "CallExpression") return [];
        const isNamed = property.key.type === "Identifier" && property.key.name.endsWith("Schema");
        return isNamed ? [{ start: property.value.start, end: property.value.end, isSchema: true }] : [];
      });
    default:
      return [];
  }
}
