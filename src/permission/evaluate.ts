import { z } from "zod";
import { UserError } from "../base/errors.ts";
import { lazy } from "../base/lazy.ts";
import { covers, expandHome, isCatchAll, matches, overlaps } from "./pattern.ts";
import { actionSchema, isAction } from "./rule.ts";
import type { Action, PermissionRequest, Rule, Ruleset, Subject } from "./rule.ts";

/** What the rules say about a call, with the subject and the rule that decided. */
export interface Verdict {
  action: Action;
  permission: string;
  subject: string;
  /** Undefined where no rule matched. */
  rule?: Rule;
  reason: string;
}

const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };

/** As strict as the strictest subject of all requests; of equally strict ones the first is named. Nothing asked is allowed. */
export function evaluate(request: PermissionRequest | readonly PermissionRequest[], rules: Ruleset): Verdict {
  const requests: readonly PermissionRequest[] = "permission" in request ? [request] : request;
  let strictest: Verdict | undefined;
  for (const { permission, subjects } of requests) {
    const relevant = rules.filter((rule) => matches(rule.permission, permission));
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

/** Whether the model need not see a tool at all: the last rule for it denies everything. */
export function isHidden(permission: string, rules: Ruleset): boolean {
  const last = rules.findLast((rule) => matches(rule.permission, permission));
  return last !== undefined && last.action === "deny" && isCatchAll(last.pattern);
}

/** Without what is said of everything. */
function omitCatchAll(rules: Ruleset): Ruleset {
  return [allow("*", "*"), ...rules.filter(({ pattern }) => !isCatchAll(pattern))];
}

/**
 * `rules` hold for the permission already; the last that applies to the subject itself wins. An ask that applies only
 * to a part of it, or to another spelling, does not hide a deny that stands before.
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
  return partly ?? { ...base, action: "ask", reason: subject.opaque ?? subject.confirm ?? "no rule matches" };
}

/** What a rule for everything allows may still need a person. */
function confirmAllow(verdict: Verdict, subject: Subject, stricterBehind: Rule | undefined): Verdict {
  if (subject.confirm !== undefined) return { ...verdict, action: "ask", reason: subject.confirm };
  if (!stricterBehind || subject.opaque === undefined || !isCatchAll(verdict.rule?.pattern ?? ""))
    return verdict;
  const reason = `${subject.opaque}, and a stricter rule may apply`;
  return { ...verdict, action: "ask", rule: stricterBehind, reason };
}

interface Application {
  action: Action;
  /** It holds for the subject itself and for all that the subject stands for. */
  coversSubject: boolean;
  /** What it holds for, where that is not the subject itself. */
  scope?: string;
}

/** What the rule says about the subject, undefined where it says nothing. */
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

/** Whether what the pattern says before its first wildcard leads into the folder. */
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

/** `node *` covers all that node runs, as a script of its own could do the same. */
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

/** Characters of one pattern; with it a match takes a bounded time whatever the text. */
const patternLimit = 1000;

const patternSchema = z.string().max(patternLimit);
const patternsSchema = z.record(patternSchema, actionSchema);
const permissionConfigSchema = z.union([
  actionSchema,
  z.record(patternSchema, z.union([actionSchema, patternsSchema])),
]);
const toolsConfigSchema = z.record(z.string(), z.boolean());

/** Tools that change files and go by the permission `edit`. */
const editTools = new Set(["edit", "write", "multiedit", "apply_patch", "patch"]);

/** The permission under which a tool asks, by the tool's name. */
export function getToolPermission(tool: string): string {
  return editTools.has(tool) ? "edit" : tool;
}

/**
 * Rules from the key `permission` of a configuration: an action for everything, or for each permission an action or
 * actions by pattern, in the order in which they are written. Throws {@link UserError} for anything else.
 */
export function parseRules(config: unknown, home: string): Rule[] {
  const permissions = toPermissions(config);
  if (typeof permissions === "string") return [{ permission: "*", pattern: "*", action: permissions }];
  return Object.entries(permissions).flatMap(([name, value]) => {
    const patterns = typeof value === "string" ? { "*": value } : value;
    return Object.entries(patterns).map(([pattern, action]) => {
      return { permission: getToolPermission(name), pattern: expandHome(pattern, home), action };
    });
  });
}

type Permissions = z.infer<typeof permissionConfigSchema>;

function toPermissions(config: unknown): Permissions {
  if (isPermissions(config)) return config;
  const parsed = permissionConfigSchema.safeParse(config);
  if (parsed.success) return parsed.data;
  throw new UserError(`permission: ${z.prettifyError(parsed.error)}. Use "allow", "ask" or "deny".`);
}

/** Right at a look: the schema takes its time to be built, and is asked what is wrong. */
function isPermissions(config: unknown): config is Permissions {
  return isAction(config) || isRecordOf(config, (value) => isAction(value) || isRecordOf(value, isAction));
}

function isRecordOf(value: unknown, isRight: (value: unknown) => boolean): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(([key, entry]) => key.length <= patternLimit && isRight(entry));
}

/** Rules from the older key `tools`, which switches tools on and off by name. Throws {@link UserError}. */
export function parseToolSwitches(config: unknown): Rule[] {
  return Object.entries(toSwitches(config)).map(([tool, on]) => {
    return { permission: getToolPermission(tool), pattern: "*", action: on ? "allow" : "deny" };
  });
}

type Switches = z.infer<typeof toolsConfigSchema>;

function toSwitches(config: unknown): Switches {
  if (isSwitches(config)) return config;
  const parsed = toolsConfigSchema.safeParse(config);
  if (parsed.success) return parsed.data;
  throw new UserError(`tools: ${z.prettifyError(parsed.error)}. Use true or false for each tool.`);
}

function isSwitches(config: unknown): config is Switches {
  return isRecordOf(config, (value) => typeof value === "boolean");
}

/** The first layer of every agent's rules. The folders are absolute real paths that may be used although they lie outside. */
export function defaultRules(folders: { outputFolder: string; skillFolders: readonly string[] }): Rule[] {
  const open = [folders.outputFolder, ...folders.skillFolders].flatMap((folder) => [
    allow("external_directory", folder),
    allow("external_directory", `${folder}/*`),
  ]);
  return [
    allow("*", "*"),
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

/** Tools that read files; a general rule about one of them does not close the folder of whole outputs. */
export const readingTools: readonly string[] = ["read", "list", "glob", "grep"];

/** Commands with which agents look at a whole output. */
const outputReaders = ["cat", "head", "tail", "grep", "rg", "sed -n", "wc"];

/** Rules that open the folder of whole outputs to one permission; none for those that do not read it. */
export function outputRules(permission: string, folder: string): Rule[] {
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

/** Commands that only read, for agents that may change nothing. Options through which they write are opaque anyway. */
const readingCommands =
  "arch, awk, basename, cat, cd, cmp, column, comm, cut, date, df, diff, dirname, du, b2sum, echo, egrep, false, fgrep, file, find, fmt, fold, gawk, grep, head, hexdump, id, jq, ls, md5sum, nl, od, paste, printf, pwd, read, readlink, realpath, rev, rg, sed, seq, sha1sum, sha256sum, sha512sum, shasum, sleep, sort, stat, strings, tac, tail, test, [, tr, tree, true, type, uname, uniq, wc, whereis, which, whoami, " +
  "git blame, git cat-file, git describe, git diff, git grep, git log, git ls-files, git ls-tree, git merge-base, git name-rev, git rev-list, git rev-parse, git shortlog, git show, git status, git diff-tree, git for-each-ref, git show-ref, git count-objects, git --version, " +
  "git branch --list, git remote show, git remote get-url, git stash list, git stash show, git tag --list, git tag -l, git worktree list, git config --get, git config --list, command -v";

/** Forms of commands that change something in other forms: allowed as they stand only. */
const readingForms =
  "git branch, git branch -a, git branch -r, git branch -v, git branch -vv, git branch -avv, git branch --all, git branch --remotes, git branch --show-current, git remote, git remote -v, git tag, git stash list, git reflog, :, break, continue, exit, exit 0, exit 1, set -e, set -u, set -eu, set -euo pipefail, set -o pipefail";

/** Rules that allow what only reads, to be put behind a rule that asks for or denies every other command. */
export const readingCommandRules = lazy((): readonly Rule[] => {
  const commands = readingCommands.split(", ").map((name) => `${name} *`);
  const all = [...commands, ...readingForms.split(", ")];
  return all.flatMap(addPagerVariant).map((pattern) => allow("bash", pattern));
});

/** git's commands also where they are told to use no pager. */
function addPagerVariant(pattern: string): string[] {
  return pattern.startsWith("git ") ? [pattern, pattern.replace("git ", "git --no-pager ")] : [pattern];
}
