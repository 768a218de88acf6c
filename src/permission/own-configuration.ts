const configurationFolders: ReadonlySet<string> = new Set([".fairlead", ".opencode"]);
const configurationFiles: ReadonlySet<string> = new Set([
  "fairlead.json",
  "fairlead.jsonc",
  "opencode.json",
  "opencode.jsonc",
]);

/** Parents of the program's folders in the user's home. */
const userFolders: ReadonlySet<string> = new Set([".config", "share", "state", "roaming", "local"]);

/** Entries of `.git`, also of its submodules and worktrees, that name programs for git to run. */
const gitProgramFiles: ReadonlySet<string> = new Set(["hooks", "config", "config.worktree", "commondir"]);

/** Folders of other programs whose agents, commands, skills and hooks are used. */
const otherFolders: ReadonlySet<string> = new Set([".claude", ".agents"]);
const otherKinds: ReadonlySet<string> = new Set([
  "agents",
  "commands",
  "skills",
  "hooks",
  "settings.json",
  "settings.local.json",
]);

/**
 * Whether a change of the path could change what the agent may do or what it runs: its configuration, agents, skills
 * and plugins, and git's hooks and configuration.
 * - `below`: everything in the folder is changed too.
 * - Plans are not configuration.
 * - Ignores case, as some file systems do.
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

/** Returns why the user must confirm a change of the path each time; undefined if not. */
export function findOwnConfigurationReason(path: string, below = false): string | undefined {
  return isOwnConfiguration(path, below)
    ? "it may change the agent's own configuration or what git runs"
    : undefined;
}

/** Whether the component is a folder of the user's configuration, consents or approvals. */
function isUserConfiguration(parts: readonly string[], index: number): boolean {
  return userFolders.has(parts[index - 1] ?? "") && ["fairlead", "opencode"].includes(parts[index] ?? "");
}
