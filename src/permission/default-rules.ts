import { toSlashes } from "../base/files/paths.ts";
import { lazy } from "../base/lazy.ts";
import type { Rule } from "./rule.ts";

/** Returns the first layer of every agent's rules. The folders are absolute real paths outside the workspace to allow. */
export function defaultRules(folders: { outputFolder: string; skillFolders: readonly string[] }): Rule[] {
  const open = [folders.outputFolder, ...folders.skillFolders]
    .map((folder) => toSlashes(folder))
    .flatMap((folder) => [allow("external_directory", folder), allow("external_directory", `${folder}/*`)]);
  return [
    { ...allow("*", "*"), asksIfIrreversible: true },
    ask("doom_loop", "*"),
    ask("external_directory", "*"),
    ...open,
    ...["question", "plan_enter", "plan_exit"].map((permission): Rule => ({
      permission,
      pattern: "*",
      action: "deny",
    })),
    allow("read", "*"),
    ask("read", "*.env"),
    ask("read", "*.env.*"),
    allow("read", "*.env.example"),
  ];
}

/** Tools that read files. A rule for `*` on one of them does not apply to the folder of tool outputs. */
export const readingTools: readonly string[] = ["read", "list", "glob", "grep"];

/** Commands with which agents read a full tool output. */
const outputReaders = ["cat", "head", "tail", "grep", "rg", "sed -n", "wc"];

/** Returns rules that allow reading the folder of tool outputs; none for permissions that do not read. */
export function outputRules(permission: string, nativeFolder: string): Rule[] {
  const folder = toSlashes(nativeFolder);
  if (permission === "bash")
    return outputReaders
      .flatMap((name) => [`${name} ${folder}/*`, `${name} * ${folder}/*`])
      .map((pattern) => allow(permission, pattern));
  if (permission !== "external_directory" && !readingTools.includes(permission)) return [];
  return [allow(permission, folder), allow(permission, `${folder}/*`)];
}

function allow(permission: string, pattern: string): Rule {
  return { permission, pattern, action: "allow" };
}

function ask(permission: string, pattern: string): Rule {
  return { permission, pattern, action: "ask" };
}

/** Commands that only read, for read-only agents. Their options that write are opaque. */
const readingCommands =
  "arch, awk, basename, cat, cd, cmp, column, comm, cut, date, df, diff, dirname, du, b2sum, echo, egrep, false, fgrep, file, find, fmt, fold, gawk, grep, head, hexdump, id, jq, ls, md5sum, nl, od, paste, printf, pwd, read, readlink, realpath, rev, rg, sed, seq, sha1sum, sha256sum, sha512sum, shasum, sleep, sort, stat, strings, tac, tail, test, [, tr, tree, true, type, uname, uniq, wc, whereis, which, whoami, " +
  "git blame, git cat-file, git describe, git diff, git grep, git log, git ls-files, git ls-tree, git merge-base, git name-rev, git rev-list, git rev-parse, git shortlog, git show, git status, git diff-tree, git for-each-ref, git show-ref, git count-objects, git --version, " +
  "git branch --list, git remote show, git remote get-url, git stash list, git stash show, git tag --list, git tag -l, git worktree list, git config --get, git config --list, command -v";

/** Exact commands that only read, but change something with other arguments. */
const readingForms =
  "git branch, git branch -a, git branch -r, git branch -v, git branch -vv, git branch -avv, git branch --all, git branch --remotes, git branch --show-current, git remote, git remote -v, git tag, git stash list, git reflog, :, break, continue, exit, exit 0, exit 1, set -e, set -u, set -eu, set -euo pipefail, set -o pipefail";

/** Rules that allow read-only commands; they go after a rule that asks or denies every other command. */
export const readingCommandRules = lazy((): readonly Rule[] => {
  const commands = readingCommands.split(", ").map((name) => `${name} *`);
  const all = [...commands, ...readingForms.split(", ")];
  return all.flatMap(addPagerVariant).map((pattern) => allow("bash", pattern));
});

/** Adds the variant of a git command with `--no-pager`. */
function addPagerVariant(pattern: string): string[] {
  return pattern.startsWith("git ") ? [pattern, pattern.replace("git ", "git --no-pager ")] : [pattern];
}
