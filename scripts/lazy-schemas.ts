import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin, PluginContext } from "rolldown";
import * as zod from "zod";
import { toSlashes } from "../src/base/files/paths.ts";

const source = fileURLToPath(new URL("../src", import.meta.url));
const modelLibraries = ["@ai-sdk/openai-compatible", "@ai-sdk/openai", "@ai-sdk/anthropic"].map((name) =>
  fileURLToPath(import.meta.resolve(name)),
);
const modelLibraryZod = fileURLToPath(new URL("lean-sdk-zod.js", import.meta.url));
const runtime = fileURLToPath(new URL("lazy-schemas-runtime.js", import.meta.url));

/** The part of the bundle that holds the library of schemas; it is an entry, so that its name is known. */
export const schemaLibrary = "schema-library";

/**
 * Builds each schema that a module keeps when it is first used, and loads the library with the first of them: loading
 * it and building them all takes as long as everything else that a new session needs.
 */
export function lazySchemas(): Plugin {
  return {
    name: "lazy-schemas",
    resolveId(id, importer) {
      if (id === schemaLibrary) return id;
      if (id === `./${schemaLibrary}.cjs`) return { id, external: true };
      return id === "zod" && importer !== undefined && isOurs(importer) ? runtime : null;
    },
    load(id) {
      return id === schemaLibrary ? `export { ${calledNames().join(", ")} } from "zod";` : null;
    },
    transform(code, id) {
      const isGenerated = isProtocols(id);
      if (!isGenerated && !(isOurs(id) && code.includes('from "zod"'))) return null;
      const { body } = this.parse(code, { lang: isGenerated ? "js" : "ts" });
      const built = body.flatMap(isGenerated ? generatedSchemasIn : schemasIn);
      return { code: `import { lazily } from ${JSON.stringify(runtime)};${wrapped(code, built)}`, map: null };
    },
  };
}

/** A name space of its own, of which only types are used. */
const unused = "core";

/** Names of the library's functions that are called anywhere, also as `z2` by its dependents: all of it would bring its messages in forty languages along. */
function calledNames(): string[] {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  const texts = files.map((name) => readFileSync(join(source, name), "utf8"));
  texts.push(...[...modelLibraries, modelLibraryZod].map((path) => readFileSync(path, "utf8")));
  const names = texts.flatMap((text) =>
    [...text.matchAll(/\bz\d*\s*\.\s*([a-z]\w*)/g)].map((match) => match[1] ?? ""),
  );
  return [...new Set(names)].filter((name) => Object.hasOwn(zod, name) && name !== unused).sort();
}

function isOurs(id: string): boolean {
  return id.startsWith(join(source, "/"));
}

/** The protocol library's schemas, hundreds in one file, of which a session needs a few. */
function isProtocols(id: string): boolean {
  const path = toSlashes(id);
  return path.includes("/@agentclientprotocol/sdk/") && path.endsWith("/zod.gen.js");
}

interface Span {
  start: number;
  end: number;
}

function wrapped(code: string, spans: readonly Span[]): string {
  return spans.reduceRight((text, { start, end }) => {
    return `${text.slice(0, start)}/* @__PURE__ */ lazily(() => (${text.slice(start, end)}))${text.slice(end)}`;
  }, code);
}

type Statement = ReturnType<PluginContext["parse"]>["body"][number];

/** By the names that schemas have here, and the objects of schemas that they share. */
function schemasIn(statement: Statement): Span[] {
  const declaration = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
  if (declaration?.type !== "VariableDeclaration") return [];
  return declaration.declarations.flatMap(({ id, init }) => {
    const isNamed = id.type === "Identifier" && id.name.endsWith("Schema") && init?.type === "CallExpression";
    const isShared = init?.type === "ObjectExpression" && init.properties.some(isCall);
    return init && (isNamed || isShared) ? [init] : [];
  });
}

/** Each exported value, for such a file holds nothing else. */
function generatedSchemasIn(statement: Statement): Span[] {
  const declaration = statement.type === "ExportNamedDeclaration" ? statement.declaration : undefined;
  if (declaration?.type !== "VariableDeclaration") return [];
  return declaration.declarations.flatMap(({ init }) => (init ? [init] : []));
}

function isCall(property: { type: string; value?: { type: string } }): boolean {
  return property.value?.type === "CallExpression";
}
