import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { excerpt } from "../base/text/excerpt.ts";
import { quoteLine } from "../base/text/quote-word.ts";
import { messageOf } from "../base/errors.ts";
import { textOf } from "../base/secrets/text-or-bytes.ts";
import type { Log } from "../base/log.ts";
import type { FileChange } from "../message/part.ts";
import type { Ruleset } from "../permission/rule.ts";
import type { ProjectSandbox } from "../sandbox/project-sandbox.ts";
import { recordChanges } from "../tool/bash/record-changes.ts";
import { compareTexts } from "../tool/diff.ts";
import type { SeenFiles } from "../tool/seen-files.ts";
import { decodeText, editLimitBytes } from "../tool/text-file.ts";
import { formatPath, isInside } from "../workspace/paths.ts";
import type { Environment } from "../workspace/process/find-program.ts";
import type { ProcessOutcome } from "../workspace/process/process.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { Formatter } from "./choose-formatters.ts";
import { findNearestDepth } from "./find-configured-folders.ts";
import { findFormatterProgram } from "./find-formatter-program.ts";

/** Time for one formatter and one file. */
const formatLimitMs = 20_000;
/** A formatter that took too long this often is no longer used. */
const timeoutsLimit = 2;
/** Characters of a formatter's output that the model sees after a failure. */
const outputLimit = 1_000;
/** Files of one call that are formatted. */
const filesLimit = 100;

export interface ProjectFormattersDeps {
  readonly formatters: readonly Formatter[];
  readonly workspace: Workspace;
  /** Returns the environment of commands. */
  readonly env: () => Environment;
  readonly sandbox: () => Promise<Pick<ProjectSandbox, "open">>;
  readonly log: Log;
  /** Milliseconds for one formatter and one file; default {@link formatLimitMs}. */
  readonly limitMs?: number;
}

/** The call that changed the files. */
export interface FormattedCall {
  readonly seen: SeenFiles;
  /** The lists of rules that apply to the session. */
  readonly rules: readonly Ruleset[];
  /** The session's approval setting is *Sandboxed*. */
  readonly isSandboxed: boolean;
  readonly signal: AbortSignal;
}

export interface FormattedChanges {
  /** The changes with the formatted contents, and those of other files. */
  readonly changes: readonly FileChange[];
  /** For the model. */
  readonly notes: readonly string[];
}

/** Formats files that a call changed. Never rejects. */
export type FormatChanges = (
  changes: readonly FileChange[],
  call: FormattedCall,
) => Promise<FormattedChanges>;

/** Runs the formatters of a project. One that fails leaves the file as the tool wrote it. */
export class ProjectFormatters {
  readonly #deps: ProjectFormattersDeps;
  /** Number of timeouts by formatter. */
  readonly #timeouts = new Map<string, number>();
  readonly #limitMs: number;

  constructor(deps: ProjectFormattersDeps) {
    this.#deps = deps;
    this.#limitMs = deps.limitMs ?? formatLimitMs;
  }

  /** Formats the files that a call added or changed inside the workspace. */
  async format(changes: readonly FileChange[], call: FormattedCall): Promise<FormattedChanges> {
    const formatted: FileChange[] = [];
    const others: FileChange[] = [];
    const notes: string[] = [];
    for (const [index, change] of changes.entries()) {
      const chosen = index < filesLimit ? this.#choose(change) : [];
      let current = change;
      for (const formatter of chosen) {
        if (call.signal.aborted) break;
        const result = await this.#formatFile(formatter, current, call);
        current = result.change;
        others.push(...result.others);
        notes.push(...result.notes);
      }
      formatted.push(current);
    }
    return { changes: [...formatted, ...others], notes };
  }

  #choose({ path, operation, isLink }: FileChange): Formatter[] {
    const { formatters, workspace } = this.#deps;
    if (operation === "delete" || isLink === true || !isInside(path, workspace.roots)) return [];
    const matching = formatters.filter(
      ({ name, extensions }) =>
        (this.#timeouts.get(name) ?? 0) < timeoutsLimit && extensions.some((end) => path.endsWith(end)),
    );
    const known = findNearest(path, workspace, matching);
    return [...(known === undefined ? [] : [known]), ...matching.filter((one) => !one.configuredIn)];
  }

  async #formatFile(formatter: Formatter, change: FileChange, call: FormattedCall): Promise<FormattedFile> {
    const { workspace, log } = this.#deps;
    try {
      return await workspace.files.lock([change.path], () => this.#formatLocked(formatter, change, call));
    } catch (error) {
      // The edit succeeded: a failing formatter must not fail it.
      log.warn("formatter failed", { formatter: formatter.name, error: messageOf(error) });
      return unchanged(change, this.#describeFailure(formatter, change, messageOf(error)));
    }
  }

  async #formatLocked(formatter: Formatter, change: FileChange, call: FormattedCall): Promise<FormattedFile> {
    const { workspace } = this.#deps;
    const { path } = change;
    const before = await workspace.files.read(path);
    const program = await findFormatterProgram(formatter, dirname(path), workspace, this.#deps.env());
    if (program === undefined) {
      if (formatter.configuredIn !== undefined) return unchanged(change);
      return unchanged(
        change,
        this.#describeFailure(formatter, change, "its program was not found on the PATH"),
      );
    }
    const tracked = formatter.changesOthers
      ? await workspace.changeTracker.start(workspace.roots, [])
      : undefined;
    const { outcome, output } = await this.#run({ ...formatter, program }, path, call);
    const problem = describeProblem(outcome, output, this.#limitMs);
    if (outcome.end === "timed-out") this.#countTimeout(formatter);
    const after = await this.#readText(path);
    const others = await this.#recordOthers(await tracked?.finish(), path);
    const isEmptied = after?.bytes.length === 0 && before.bytes.length > 0;
    if (problem !== undefined || after === undefined || isEmptied) {
      const reason = problem ?? (isEmptied ? "it emptied the file" : "the file is no longer text");
      const restored = await this.#restore(path, before);
      return {
        ...unchanged(change, this.#describeFailure(formatter, change, reason, restored)),
        others: others.changes,
      };
    }
    const notes = others.notes.map((note) => `${formatter.name}: ${note}`);
    if (after.hash === before.hash) return { change, others: others.changes, notes };
    workspace.changeTracker.acknowledge(path, { before: before.hash, after: after.bytes });
    // The model knows the new text, because the result shows what changed.
    if (call.seen.get(path) === before.hash)
      call.seen.setChanged(path, after.hash, { path, hash: before.hash });
    const text = decodeText(before.bytes)?.text ?? "";
    const { excerpt: lines } = compareTexts(text, after.text);
    const shown = lines === "" ? " Read it before you edit it again." : `, which changed:\n${lines}`;
    const name = formatPath(workspace.cwd, path);
    const where = others.changes.length === 0 ? "" : ` It also changed ${this.#list(others.changes)}.`;
    return {
      change: await this.#toFormatted(change, after),
      others: others.changes,
      notes: [`[${name}: Formatted by ${formatter.name}${shown}]${where}`, ...notes],
    };
  }

  #list(changes: readonly FileChange[]): string {
    return changes.map(({ path }) => formatPath(this.#deps.workspace.cwd, path)).join(", ");
  }

  async #toFormatted(change: FileChange, after: TextContent): Promise<FileChange> {
    const { snapshots } = this.#deps.workspace;
    const saved = await snapshots.save(after.bytes);
    const { before } = change;
    const original = typeof before === "string" ? await snapshots.load(before) : undefined;
    const isCountable = before === null || original !== undefined;
    const oldText = original === undefined ? null : (decodeText(original)?.text ?? null);
    const { additions, deletions } = isCountable ? compareTexts(oldText, after.text) : change;
    return { ...change, after: saved, additions, deletions };
  }

  /** Returns undefined if the file is gone or is not text. */
  async #readText(path: string): Promise<TextContent | undefined> {
    try {
      const { bytes, hash } = await this.#deps.workspace.files.read(path);
      const decoded = bytes.length <= editLimitBytes ? decodeText(bytes) : undefined;
      return decoded && { bytes, hash, text: decoded.text };
    } catch {
      return undefined;
    }
  }

  /** Returns whether the file has the text that the tool wrote. */
  async #restore(path: string, before: { bytes: Buffer; hash: string }): Promise<boolean> {
    const { files } = this.#deps.workspace;
    try {
      const now = await this.#readHash(path);
      if (now !== before.hash) await files.write(path, before.bytes, now);
      return true;
    } catch (error) {
      this.#deps.log.warn("file not restored after formatter", { path, error: messageOf(error) });
      return false;
    }
  }

  async #readHash(path: string): Promise<string | null> {
    const exists = await access(path).then(
      () => true,
      () => false,
    );
    return exists ? (await this.#deps.workspace.files.read(path)).hash : null;
  }

  async #recordOthers(
    found: Parameters<typeof recordChanges>[0] | undefined,
    path: string,
  ): Promise<{ changes: readonly FileChange[]; notes: readonly string[] }> {
    const files = (found?.files ?? []).filter((file) => file.path !== path);
    if (files.length === 0) return { changes: [], notes: [] };
    const { changes, notUndone } = await recordChanges({ files, notes: [] }, this.#deps.workspace.snapshots);
    return { changes, notes: notUndone };
  }

  async #run(
    { command, program, environment }: Formatter & { program: string },
    path: string,
    call: FormattedCall,
  ) {
    const { processes, cwd } = this.#deps.workspace;
    const argv = [program, ...command.slice(1).map((word) => word.replaceAll("$FILE", () => path))];
    const line = quoteLine(argv, await processes.findShell());
    const confinement = await (
      await this.#deps.sandbox()
    ).open({
      command: line,
      start: cwd,
      requests: [],
      isSandboxed: call.isSandboxed,
      rules: call.rules,
      isAllowedOutside: false,
      hosts: [],
      // Only hosts of the configuration: a formatter has no call that could ask.
      judgeConnection: () => "ask",
    });
    let output = "";
    if (confinement.kind === "refused") throw new Error(confinement.reason);
    const outcome = await processes.run({
      command: line,
      cwd,
      timeoutMs: this.#limitMs,
      signal: call.signal,
      confine: async () => {
        if (confinement.kind === "none") return { argv, env: environment, holdsOutput: false };
        const confined = await confinement.confine(argv);
        return { ...confined, env: { ...environment, ...confined.env } };
      },
      onOutput: async (chunk) => {
        if (output.length < outputLimit) output += textOf(chunk);
      },
    });
    const added =
      confinement.kind === "confined" ? await confinement.findAddedFiles(outcome.background) : undefined;
    if (added !== undefined) this.#deps.log.warn("formatter added configuration", { program, added });
    return { outcome, output };
  }

  #countTimeout({ name }: Formatter): void {
    this.#timeouts.set(name, (this.#timeouts.get(name) ?? 0) + 1);
  }

  #describeFailure({ name }: Formatter, { path }: FileChange, reason: string, isRestored = true): string {
    const left = isRestored ? "The file is as you wrote it." : "Read the file: it may be damaged.";
    const off =
      this.#timeouts.get(name) === timeoutsLimit ? ` ${name} is not used any more in this session.` : "";
    return `[${name} could not format ${formatPath(this.#deps.workspace.cwd, path)} (${reason}). ${left}${off}]`;
  }
}

/** Returns the known formatter that is configured nearest to the file, or the first one if several are configured in the same folder. */
function findNearest(
  path: string,
  { cwd, worktree = cwd }: Workspace,
  formatters: readonly Formatter[],
): Formatter | undefined {
  let nearest: { readonly formatter: Formatter; readonly depth: number } | undefined;
  for (const formatter of formatters) {
    const depth = findNearestDepth(path, worktree, formatter.configuredIn ?? []);
    if (depth !== undefined && (nearest === undefined || depth > nearest.depth))
      nearest = { formatter, depth };
  }
  return nearest?.formatter;
}

interface TextContent {
  readonly bytes: Buffer;
  readonly hash: string;
  readonly text: string;
}

interface FormattedFile {
  readonly change: FileChange;
  /** Changes of other files. */
  readonly others: readonly FileChange[];
  readonly notes: readonly string[];
}

const unchanged = (change: FileChange, ...notes: readonly string[]): FormattedFile => ({
  change,
  others: [],
  notes,
});

/** Returns why a run failed; undefined if it did not. */
function describeProblem(
  { end, exitCode, error }: ProcessOutcome,
  output: string,
  limitMs: number,
): string | undefined {
  const printed = output.trim() === "" ? "" : `: ${excerpt(output.trim(), outputLimit)}`;
  if (end === "timed-out") return `it took longer than ${limitMs / 1_000} seconds${printed}`;
  if (end === "cancelled") return "it was cancelled";
  if (end === "failed-to-start") return error ?? "it could not be started";
  return exitCode === 0 ? undefined : `exit code ${exitCode ?? "none"}${printed}`;
}
