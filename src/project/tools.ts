import { join } from "node:path";
import { once } from "../base/async.ts";
import { stampOf } from "../config/files/stamp.ts";
import type { Config } from "../config/schema.ts";
import type { FoundModules, ModuleSources } from "../plugin/modules.ts";
import type { SharedPlugins, WantedPlugins } from "../plugin/shared-plugins.ts";
import type { Project } from "../conversation/project.ts";
import type { Skill } from "../skill/skill.ts";
import type { ShellPlace } from "../tool/bash/bash.ts";
import type { Tool } from "../tool/tool.ts";
import { shellContext } from "../workspace/shell-context.ts";

export interface ProjectToolsOptions {
  readonly skills: readonly Skill[];
  readonly search: Config["search"];
  /** Where plugins and tools of authors are looked for. */
  readonly sources: ModuleSources;
  readonly place: WantedPlugins["place"];
  openPlugins(): Promise<SharedPlugins>;
  /** Whether what the project was made of is another one now. */
  hasChanged(): Promise<boolean>;
}

/** Names of tools that are not always there and stay theirs. */
const namesOfSometimes = ["task", "websearch", "codesearch", "lsp", "invalid", "batch"];

/** The tools of a project and the plugins that bring some; nothing is loaded or looked for before it is asked for. */
export function projectTools(options: ProjectToolsOptions): Pick<Project, "tools" | "plugins"> {
  const builtIn = once(() => loadBuiltIn(options));
  const modules = once(() => loadModules(options.sources));
  const plugins = async () => {
    const known = await modules();
    if (known === undefined) return undefined;
    const reserved = new Set([...(await builtIn()).map(({ name }) => name), ...namesOfSometimes]);
    const isUnchanged = async () => !(await options.hasChanged());
    return (await options.openPlugins()).get({ ...known, place: options.place, reserved, isUnchanged });
  };
  return { plugins, tools: async () => [...(await builtIn()), ...((await plugins())?.tools ?? [])] };
}

/** Tools and the grammar of the shell are large: they load behind the first answers, not before. */
async function loadBuiltIn({ skills, search }: ProjectToolsOptions): Promise<readonly Tool[]> {
  const { builtInTools } = await import("../tool/registry.ts");
  return builtInTools({ analyze, skills, search });
}

const loadAnalysis = () => import("../shell/analysis.ts");

/** Loads the grammar of the shell, and reads a line by it, for code takes a third of the time when it has run before. */
export async function warmUpAnalysis(): Promise<void> {
  const { analyzeShell } = await loadAnalysis();
  const place = { cwd: "/", roots: ["/"], home: "/", resolve: (path: string) => path, list: () => [] };
  analyzeShell(anyLine, place);
}

const anyLine = 'cd src && git log --oneline -- "$1" | head -n 5 > out.txt; ls *.md';

async function analyze(command: string, place: ShellPlace) {
  const { analyzeShell } = await loadAnalysis();
  return analyzeShell(command, shellContext(place));
}

/** With what tells them from other ones later; undefined where there are none. */
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
  return { found, stamp: await stampOf({ files, holders }, "code") };
}
