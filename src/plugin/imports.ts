import { existsSync, realpathSync } from "node:fs";
import * as nodeModule from "node:module";
import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isBelow } from "../base/files/paths.ts";
import type { ImportAllowlist } from "./protocol.ts";

/** Packages that Fairlead provides to plugins, installed or not. */
const providedPackages = new Set(["fairlead/plugin", "@opencode-ai/plugin", "@opencode-ai/plugin/tool"]);

/** Extensions that imports may omit or replace. */
const extensions = [".ts", ".js", ".mjs", "/index.ts", "/index.js"];

const apiUrl = new URL("./plugin-api.js", import.meta.url).href;
const zodUrl = new URL("./plugin-zod.js", import.meta.url).href;

type Resolve = NonNullable<nodeModule.RegisterHooksOptions["resolve"]>;

/** Registers the module resolution for plugins. Throws if Node is too old. */
export function registerImports(cover: ImportAllowlist): void {
  if (typeof nodeModule.registerHooks !== "function")
    throw new Error(`plugins and tools need Node 22.15 or newer; this is ${process.versions.node}`);
  nodeModule.registerHooks({
    resolve: (specifier, context, next) => {
      if (providedPackages.has(specifier)) return { url: apiUrl, shortCircuit: true };
      const [name, parentURL] = parsePackage(specifier) ?? [specifier, context.parentURL];
      const found = resolveWithFallback(name, { ...context, parentURL }, next);
      assertAllowed(found.url, cover);
      return found;
    },
  });
}

const packageScheme = "fairlead-package:";

/** Specifier that imports a package installed in a folder. */
export const packageSpecifier = (name: string, folder: string): string =>
  `${packageScheme}${name}#${pathToFileURL(`${folder}${sep}package.json`).href}`;

/** Package name and the file from which it is resolved. */
function parsePackage(specifier: string): [name: string, parentURL: string] | undefined {
  if (!specifier.startsWith(packageScheme)) return undefined;
  const at = specifier.indexOf("#");
  return [specifier.slice(packageScheme.length, at), specifier.slice(at + 1)];
}

/** Resolves as Node does, and falls back to the rules of bundlers. */
function resolveWithFallback(...[specifier, context, next]: Parameters<Resolve>): ReturnType<Resolve> {
  try {
    return next(specifier, context);
  } catch (error) {
    if (specifier === "zod") return { url: zodUrl, shortCircuit: true };
    const file = findFile(specifier, context.parentURL);
    if (file === undefined) throw error;
    return next(pathToFileURL(file).href, context);
  }
}

function findFile(specifier: string, parent: string | undefined): string | undefined {
  if (!/^(?:\.{1,2}\/|\/|file:)/.test(specifier) || parent?.startsWith("file:") !== true) return undefined;
  const path = fileURLToPath(new URL(specifier, parent));
  const bare = path.replace(/\.[cm]?js$/, "");
  return [...extensions.map((ending) => path + ending), `${bare}.ts`].find(
    (one) => one !== path && existsSync(one),
  );
}

/** The user consented to contents, so modules must not import files that can change without consent. */
function assertAllowed(url: string, { root, folders, files }: ImportAllowlist): void {
  if (!url.startsWith("file:")) return;
  const path = realpathSync(fileURLToPath(url));
  if (!isBelow(path, root) || files.includes(path) || folders.some((folder) => isBelow(path, folder))) return;
  throw new Error(
    `${path} may not be loaded: trust covers the folders .fairlead and .opencode only. Put it there, packages into their node_modules`,
  );
}
