import { fileURLToPath } from "node:url";
import type { Plugin, PluginContext } from "rolldown";

const headers = fileURLToPath(new URL("lean-sdk-headers.js", import.meta.url));

const lazy = fileURLToPath(new URL("lazy-schemas-runtime.js", import.meta.url));

/**
 * Leaves out of the model library what is not used of it: its packages say that loading them has no effects, but what
 * they build at once looks as if it had. The schemas that are left are built when they are used, behind the request.
 * And gives it headers of its own, for Node's load all of its fetch.
 */
export const leanSdk: Plugin = {
  name: "lean-sdk",
  transform(code, id) {
    if (!/\/node_modules\/(ai|@ai-sdk\/[^/]+)\//.test(id)) return null;
    const values = this.parse(code).body.flatMap(valuesIn);
    const text = values.reduceRight((before, { start, end, isSchema }) => {
      const value = before.slice(start, end);
      const built = isSchema ? `lazily(() => (${value}))` : value;
      return `${before.slice(0, start)}/* @__PURE__ */ ${built}${before.slice(end)}`;
    }, code);
    const given = [`import { lazily } from ${JSON.stringify(lazy)};`];
    if (id.includes("/provider-utils/")) given.push(`import { Headers } from ${JSON.stringify(headers)};`);
    return { code: given.join("") + text, map: null };
  },
};

type Statement = ReturnType<PluginContext["parse"]>["body"][number];

interface Value {
  start: number;
  end: number;
  isSchema: boolean;
}

/** The calls whose results a module keeps. Schemas are known by their names and by what they are made with. */
function valuesIn(statement: Statement): Value[] {
  if (statement.type !== "VariableDeclaration") return [];
  return statement.declarations.flatMap(({ id, init }) => {
    if (init?.type !== "CallExpression" && init?.type !== "NewExpression") return [];
    const isNamed = id.type === "Identifier" && /(Schema|Options)(\$\d+)?$/.test(id.name);
    const isLazy = init.callee.type === "Identifier" && init.callee.name === "lazySchema";
    return [{ start: init.start, end: init.end, isSchema: isNamed && !isLazy }];
  });
}
