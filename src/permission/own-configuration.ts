const configurationFolders: ReadonlySet<string> = new Set([".fairlead", ".opencode"]);
const configurationFiles: ReadonlySet<string> = new Set([
  "fairlead.json",
  "fairlead.jsonc",
  "opencode.json",
  "opencode.jsonc",
]);

/** Where the program's folders of a person are. */
const userFolders: ReadonlySet<string> = new Set([".config", "share", "state", "roaming", "local"]);

/** What of `.git`, also of submodules and worktrees in it, says which programs git runs. A file `.git` says where that is. */
const gitProgramFiles: ReadonlySet<string> = new Set(["hooks", "config", "config.worktree", "commondir"]);

/** Folders of other programs, of which agents, commands and skills count. */
const otherFolders: ReadonlySet<string> = new Set([".claude", ".agents"]);
const otherKinds: ReadonlySet<string> = new Set(["agents", "commands", "skills"]);

/**
 * Whether a change of the path could change what the agent may do or what runs beside it: its configuration, agents,
 * skills, plugins, and the hooks and the configuration of git. With `below` everything in the folder is changed too. Plans are
 * no configuration. Case does not count because some file systems ignore it.
 */
export function isOwnConfiguration(path: string, below = false): boolean {
  const parts = path.toLowerCase().split(/[/\\]/);
  if (configurationFiles.has(parts.at(-1) ?? "") || parts.at(-1) === "skill.md") return true;
  const folder = parts.findIndex(
    (part, index) => configurationFolders.has(part) || isUserConfiguration(parts, index),
  );
  if (folder !== -1) return !(parts[folder + 1] === "plans" && path.endsWith(".md"));
  const other = parts.findIndex((part) => otherFolders.has(part));
  if (other !== -1 && (otherKinds.has(parts[other + 1] ?? "") || (below && other === parts.length - 1)))
    return true;
  const git = parts.lastIndexOf(".git");
  return (
    git !== -1 && (git === parts.length - 1 || parts.slice(git + 1).some((part) => gitProgramFiles.has(part)))
  );
}

/** Configuration of the person, and what the person consented to and approved. */
function isUserConfiguration(parts: readonly string[], index: number): boolean {
  return userFolders.has(parts[index - 1] ?? "") && ["fairlead", "opencode"].includes(parts[index] ?? "");
}
