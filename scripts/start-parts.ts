import { resolve } from "node:path";
import type { CodeSplittingOptions, OutputAsset, OutputChunk } from "rolldown";

/**
 * Puts what a start loads in any case into three files, given how the bundler split the program by itself: that was some
 * twenty, shared by one request or another, of which each costs 0.2 ms. What the command line shares with the server is
 * one of the three, so that a command does not load the whole of it.
 */
export function startParts(split: readonly (OutputChunk | OutputAsset)[]): CodeSplittingOptions {
  const chunks = split.filter((part) => part.type === "chunk");
  const modulesOf = (entry: string) => modulesBehind(entry, chunks);
  const entry = modulesOf("src/cli/main.ts");
  const start = without(modulesOf("src/cli/acp.ts"), entry);
  const server = without(modulesOf("src/cli/acp-server.ts"), new Set([...entry, ...start]));
  const unshared = without(server, modulesOf("src/cli/commands.ts"));
  const group = (name: string, modules: ReadonlySet<string>) => ({
    name,
    test: (id: string) => modules.has(id),
  });
  return {
    includeDependenciesRecursively: false,
    groups: [group("start", start), group("shared", without(server, unshared)), group("server", unshared)],
  };
}

/** All modules that are loaded with the file of an entry. */
function modulesBehind(entry: string, chunks: readonly OutputChunk[]): Set<string> {
  const first = chunks.find(({ facadeModuleId }) => facadeModuleId === resolve(entry));
  if (first === undefined) throw new Error(`${entry} has no file of its own`);
  const loaded = new Set([first]);
  for (const { imports } of loaded)
    for (const chunk of chunks) if (imports.includes(chunk.fileName)) loaded.add(chunk);
  return new Set([...loaded].flatMap(({ moduleIds }) => moduleIds));
}

function without(modules: ReadonlySet<string>, others: ReadonlySet<string>): Set<string> {
  return new Set([...modules].filter((id) => !others.has(id)));
}
