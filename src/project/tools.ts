import { join } from "node:path";
import { once } from "../base/async.ts";
import { computeStamp } from "../config/files/stamp.ts";
import type { Config } from "../config/schema.ts";
import type { FoundModules, ModuleSources } from "../plugin/modules.ts";
import type { SharedPlugins, WantedPlugins } from "../plugin/shared-plugins.ts";
import type { Project } from "../conversation/project.ts";
import type { LanguageQueries } from "../lsp/language-queries.ts";
import type { ConfineProgram, ProjectSandbox } from "../sandbox/project-sandbox.ts";
import type { Skill } from "../skill/skill.ts";
import type { Tool } from "../tool/tool.ts";

export interface ProjectToolsOptions {
  readonly skills: readonly Skill[];
  readonly search: Config["search"];
  readonly sandbox: () => Promise<ProjectSandbox>;
  /** Returns the path of the shell that runs commands. */
  readonly findShell: () => Promise<string>;
  /** Questions to language servers; undefined if none may run. */
  readonly queries: () => Promise<LanguageQueries | undefined>;
  /** Search locations of plugins and custom tools. */
  readonly sources: ModuleSources;
  readonly folders: WantedPlugins["folders"];
  readonly confine: ConfineProgram;
  openPlugins(): Promise<SharedPlugins>;
  /** Whether a source of the project has changed since it was opened. */
  hasChanged(): Promise<boolean>;
}

/** Reserved names of built-in tools that are not always available. */
const conditionalToolNames = ["task", "websearch", "codesearch", "lsp", "rename_symbol", "invalid", "batch"];

/** Creates a project's tools and plugins. Loads and searches nothing before the first use. */
export function createProjectTools(options: ProjectToolsOptions): Pick<Project, "tools" | "plugins"> {
  const builtIn = once(() => loadBuiltIn(options));
  const modules = once(() => loadModules(options.sources));
  const plugins = async () => {
    const loaded = await modules();
    if (loaded === undefined) return undefined;
    const reserved = new Set([...(await builtIn()).map(({ name }) => name), ...conditionalToolNames]);
    const isUnchanged = async () => !(await options.hasChanged());
    const { folders, confine } = options;
    return (await options.openPlugins()).get({ ...loaded, folders, confine, reserved, isUnchanged });
  };
  return { plugins, tools: async () => [...(await builtIn()), ...((await plugins())?.tools ?? [])] };
}

/** Loads the built-in tools lazily: they are large. */
async function loadBuiltIn({
  skills,
  search,
  queries,
  findShell,
  sandbox: loadSandbox,
}: ProjectToolsOptions): Promise<readonly Tool[]> {
  const [{ builtInTools }, languages, shell] = await Promise.all([
    import("../tool/registry.ts"),
    queries(),
    findShell(),
  ]);
  return builtInTools({ loadSandbox, shell, skills, search, languages });
}

/** Finds plugin modules, with a stamp that changes when they do. Returns undefined when there are none. */
async function loadModules(
  sources: ModuleSources,
): Promise<{ found: FoundModules; stamp: string } | undefined> {
  const { findModules } = await import("../plugin/modules.ts");
  const found = await findModules(sources);
  if (found.modules.length + found.problems.length === 0) return undefined;
  const holders = sources.loaded.folders.map(({ path }) => path);
  const files = found.modules.map(({ name, from }) =>
    from === undefined ? name : join(from, "node_modules", name, "package.json"),
  );
  return { found, stamp: await computeStamp({ files, configFolders: holders }, "code") };
}
