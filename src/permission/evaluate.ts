import { toSlashes } from "../base/files/paths.ts";
import { lazy } from "../base/lazy.ts";
import { covers, expandHome, isCatchAll, matches, overlaps } from "./pattern.ts";
import type { PermissionConfig, ToolsConfig } from "./permission-config.ts";
import type { Action, PermissionRequest, Rule, Ruleset, Subject } from "./rule.ts";

/** The result of the rules for a call, with the deciding subject and rule. */
export interface Verdict {
  action: Action;
  permission: string;
  subject: string;
  /** Undefined if no rule matched. */
  rule?: Rule;
  reason: string;
  /** Why the call cannot be undone, if that is why it asks. */
  irreversible?: string;
}

const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };

/** Returns the strictest verdict over all subjects, the first of equally strict ones. No requests are allowed. */
export function evaluate(request: PermissionRequest | readonly PermissionRequest[], rules: Ruleset): Verdict {
  const requests: readonly PermissionRequest[] = "permission" in request ? [request] : request;
  let strictest: Verdict | undefined;
  for (const { permission, subjects, byNameOnly } of requests) {
    const relevant = rules.filter((rule) =>
      byNameOnly === true ? rule.permission === permission : matches(rule.permission, permission),
    );
    for (const subject of subjects) {
      const verdict = evaluateSubject(
        permission,
        subject,
        subject.changesDirectory ? omitCatchAll(relevant) : relevant,
      );
      if (subject.isAlternativeReading === true && verdict.action !== "deny") continue;
      if (!strictest || strictness[verdict.action] > strictness[strictest.action]) strictest = verdict;
    }
  }
  return strictest ?? { action: "allow", permission: "*", subject: "", reason: "it needs no permission" };
}

/** Whether a tool is hidden from the model: its last rule denies everything. */
export function isHidden(permission: string, rules: Ruleset): boolean {
  const last = rules.findLast((rule) => matches(rule.permission, permission));
  return last !== undefined && last.action === "deny" && isCatchAll(last.pattern);
}

/** Omits rules for `*`; without a match, allows. */
function omitCatchAll(rules: Ruleset): Ruleset {
  return [allow("*", "*"), ...rules.filter(({ pattern }) => !isCatchAll(pattern))];
}

/**
 * Evaluates rules that are already filtered by permission.
 * - The last rule that applies to the subject itself wins.
 * - An ask that applies only to part of it, or to another spelling, does not override an earlier deny.
 */
function evaluateSubject(permission: string, subject: Subject, rules: Ruleset): Verdict {
  const base = { permission, subject: subject.named ?? subject.text };
  let partly: Verdict | undefined;
  let stricterBehind: Rule | undefined;
  for (const rule of rules.toReversed()) {
    const found = findApplication(rule, subject);
    const verdict = found && {
      ...base,
      action: found.action,
      rule,
      reason: describeReason(found, rule, subject),
    };
    if (verdict?.action === "deny") return verdict;
    if (verdict?.action === "allow") return partly ?? confirmAllow(verdict, subject, stricterBehind);
    if (verdict && found?.coversSubject) return partly ?? verdict;
    partly ??= verdict;
    if (rule.action !== "allow" && !isCatchAll(rule.pattern)) stricterBehind ??= rule;
  }
  return partly ?? { ...base, action: "ask", reason: describeUnmatched(subject) };
}

function describeUnmatched({ asked, opaque, confirm }: Subject): string {
  return asked ?? opaque ?? confirm ?? "no rule matches";
}

/**
 * Turns an allow into an ask if the subject must be confirmed, cannot be undone and only the built-in default allows
 * it, or is opaque and a stricter rule may apply.
 */
function confirmAllow(verdict: Verdict, subject: Subject, stricterBehind: Rule | undefined): Verdict {
  if (subject.confirm !== undefined) return { ...verdict, action: "ask", reason: subject.confirm };
  const { irreversible } = subject;
  if (irreversible !== undefined && verdict.rule?.asksIfIrreversible === true)
    return { ...verdict, action: "ask", irreversible, reason: describeIrreversible([irreversible]) };
  if (!stricterBehind || subject.opaque === undefined || !isCatchAll(verdict.rule?.pattern ?? ""))
    return verdict;
  const reason = `${subject.opaque}, and a stricter rule may apply`;
  return { ...verdict, action: "ask", rule: stricterBehind, reason };
}

/** Returns why a question is asked about something that cannot be undone. */
export function describeIrreversible(reasons: readonly string[]): string {
  return `it cannot be undone: ${[...new Set(reasons)].join(", ")}`;
}

interface Application {
  action: Action;
  /** The rule applies to the subject itself and to everything that the subject may be. */
  coversSubject: boolean;
  /** The part to which the rule applies, if not the subject itself. */
  scope?: string;
}

/** Returns how the rule applies to the subject; undefined if it does not. */
function findApplication(rule: Rule, subject: Subject): Application | undefined {
  const { action, pattern } = rule;
  if (action === "allow") return allows(rule, subject) ? { action, coversSubject: true } : undefined;
  if (matchesWhole(pattern, subject)) return { action, coversSubject: true };
  if (matchesPartly(pattern, subject)) return { action, coversSubject: false };
  const texts = [subject.text, ...(subject.also ?? [])];
  const below = subject.below && texts.some((text) => overlaps(pattern, createBelowPattern(text)));
  const within = subject.within && action === "deny" && texts.some((text) => namesFileBelow(pattern, text));
  if (below || within) return { action: "ask", coversSubject: false, scope: "for something below it" };
  if (subject.becomes === undefined || !overlaps(pattern, subject.becomes)) return undefined;
  return { action: "ask", coversSubject: false, scope: "for what it may become when it runs" };
}

function matchesWhole(pattern: string, { text, glob }: Subject): boolean {
  return glob ? covers(pattern, text) : matches(pattern, text);
}

function matchesPartly(pattern: string, { text, also = [], glob, names }: Subject): boolean {
  if (glob && names) return names.some((name) => matches(pattern, name));
  return [text, ...also].some((one) => (glob ? overlaps(pattern, one) : matches(pattern, one)));
}

/** Whether the pattern's text before its first wildcard is inside the folder. */
function namesFileBelow(pattern: string, folder: string): boolean {
  const [named = ""] = pattern.split(/[*?]/);
  return folder === "." ? /^[^/]/.test(named) : named.startsWith(`${folder}/`);
}

function createBelowPattern(folder: string): string {
  return folder === "." ? "*" : `${folder}/*`;
}

function allows(rule: Rule, subject: Subject): boolean {
  if (isCatchAll(rule.pattern)) return true;
  const isNamed = spellsOut(rule.pattern, subject.options) || namesInterpreter(rule, subject);
  if (subject.opaque !== undefined && !isNamed) return false;
  return matchesWhole(rule.pattern, subject);
}

/** `node *` covers all code that node runs, as a script file could do the same. */
function namesInterpreter({ pattern, isApproval }: Rule, { interpreter }: Subject): boolean {
  return interpreter !== undefined && isApproval !== true && pattern === `${interpreter} *`;
}

/** `sed -i *` spells out `-i`, `sed *` does not. */
function spellsOut(pattern: string, options: readonly string[] | undefined): boolean {
  if (!options || options.length === 0) return false;
  const words = pattern.split(" ").map((word) => word.replace(/[=*].*$/, ""));
  return options.every((option) => words.includes(option));
}

function describeReason({ action, scope: about }: Application, rule: Rule, subject: Subject): string {
  const named = `the rule ${rule.permission}: "${rule.pattern}" says ${rule.action}`;
  if (action !== "allow" && subject.opaque !== undefined) return `${named}; ${subject.opaque}`;
  return about === undefined ? named : `${named} ${about}`;
}

/** Tools that change files, under the permission `edit`. */
const editTools = new Set(["edit", "write", "multiedit", "apply_patch", "patch", "rename_symbol"]);

/** Returns the permission that a tool needs. */
export function getToolPermission(tool: string): string {
  return editTools.has(tool) ? "edit" : tool;
}

/**
 * Converts the configuration key `permission`: an action for everything, or for each permission an action or actions by
 * pattern. Keeps the order.
 */
export function parseRules(config: PermissionConfig, home: string, separator?: string): Rule[] {
  if (typeof config === "string") return [{ permission: "*", pattern: "*", action: config }];
  return Object.entries(config).flatMap(([name, value]) => {
    const patterns = typeof value === "string" ? { "*": value } : value;
    return Object.entries(patterns).map(([pattern, action]) => {
      const permission = getToolPermission(name);
      const expanded = expandHome(pattern, home, separator);
      const isPath = pathPermissions.has(permission);
      return { permission, pattern: isPath ? toSlashes(expanded, separator) : expanded, action };
    });
  });
}

/** Permissions whose patterns are paths, which rules compare with `/` as separator. */
const pathPermissions: ReadonlySet<string> = new Set(["read", "edit", "list", "external_directory"]);

/** Converts the older key `tools`, which switches tools on and off by name. */
export function parseToolSwitches(config: ToolsConfig): Rule[] {
  return Object.entries(config).map(([tool, on]) => {
    return { permission: getToolPermission(tool), pattern: "*", action: on ? "allow" : "deny" };
  });
}

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

/** Whether the rules ask before edits, of all files or of some. */
export function asksForEdits(rules: Ruleset): boolean {
  return [{ text: "*" }, { text: "*", glob: true }].some(
    (subject) => evaluate({ permission: "edit", subjects: [subject], always: [] }, rules).action === "ask",
  );
}
