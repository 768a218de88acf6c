import { existsSync, realpathSync } from "node:fs";
import * as nodeModule from "node:module";
import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isBelow } from "../base/files/paths.ts";
import type { ImportAllowlist } from "./protocol.ts";

/** Names by which authors import what Fairlead gives them, whether they are installed or not. */
const authorPackages = new Set(["fairlead/plugin", "@opencode-ai/plugin", "@opencode-ai/plugin/tool"]);

/** Endings that may be left out, or stand for another, in imports of files. */
const endings = [".ts", ".js", ".mjs", "/index.ts", "/index.js"];

const apiUrl = new URL("./plugin-api.js", import.meta.url).href;
const zodUrl = new URL("./plugin-zod.js", import.meta.url).href;

type Resolve = NonNullable<nodeModule.RegisterHooksOptions["resolve"]>;

/** Teaches this process how modules of authors are found. Throws where Node is too old for it. */
export function registerImports(cover: ImportAllowlist): void {
  if (typeof nodeModule.registerHooks !== "function")
    throw new Error(`plugins and tools need Node 22.15 or newer; this is ${process.versions.node}`);
  nodeModule.registerHooks({
    resolve: (specifier, context, next) => {
      if (authorPackages.has(specifier)) return { url: apiUrl, shortCircuit: true };
      const [name, parentURL] = parsePackage(specifier) ?? [specifier, context.parentURL];
      const found = resolveKindly(name, { ...context, parentURL }, next);
      assertCovered(found.url, cover);
      return found;
    },
  });
}

const packageScheme = "fairlead-package:";

/** What imports a package that is installed in a folder. */
export const packageSpecifier = (name: string, folder: string): string =>
  `${packageScheme}${name}#${pathToFileURL(`${folder}${sep}package.json`).href}`;

/** The package's name and the file from which it is looked for. */
function parsePackage(specifier: string): [name: string, parentURL: string] | undefined {
  if (!specifier.startsWith(packageScheme)) return undefined;
  const at = specifier.indexOf("#");
  return [specifier.slice(packageScheme.length, at), specifier.slice(at + 1)];
}

/** As Node does it, and for what it does not find as bundlers do. */
function resolveKindly(...[specifier, context, next]: Parameters<Resolve>): ReturnType<Resolve> {
  try {
    return next(specifier, context);
  } catch (error) {
    if (specifier === "zod") return { url: zodUrl, shortCircuit: true };
    const file = fileMeant(specifier, context.parentURL);
    if (file === undefined) throw error;
    return next(pathToFileURL(file).href, context);
  }
}

function fileMeant(specifier: string, parent: string | undefined): string | undefined {
  if (!/^(?:\.{1,2}\/|\/|file:)/.test(specifier) || parent?.startsWith("file:") !== true) return undefined;
  const path = fileURLToPath(new URL(specifier, parent));
  const bare = path.replace(/\.[cm]?js$/, "");
  return [...endings.map((ending) => path + ending), `${bare}.ts`].find(
    (one) => one !== path && existsSync(one),
  );
}

/** Consent is to contents: a module may not bring others along that can change without being asked about. */
function assertCovered(url: string, { root, folders, files }: ImportAllowlist): void {
  if (!url.startsWith("file:")) return;
  const path = realpathSync(fileURLToPath(url));
  if (!isBelow(path, root) || files.includes(path) || folders.some((folder) => isBelow(path, folder))) return;
  throw new Error(
    `${path} may not be loaded: trust covers the folders .fairlead and .opencode only. Put it there, packages into their node_modules`,
  );
}
