import type { CheckKind, CommandRun, EvidencePart } from "../message/part.ts";

type Facts = Omit<EvidencePart, "id" | "type">;

/** Commands named in a title. */
const titleRuns = 2;

/** Describes evidence in one line, without Markdown: an unproven claim first, else what was changed and run. */
export function titleOf(facts: Facts): string {
  const [unproven] = facts.unproven;
  if (unproven !== undefined) return `${changed(facts)}; ${describeClaim(unproven, plain)}`;
  return `${changed(facts)}; ${ranAfter(facts)}`;
}

function changed({ files, moreFiles = 0, changedBy = [] }: Facts): string {
  const count = files.length + moreFiles;
  const byCommands = changedBy.length === 1 ? "1 command" : `${changedBy.length} commands`;
  if (count === 0) return `Files changed by ${byCommands}`;
  return `${count === 1 ? "1 file" : `${count} files`} changed`;
}

function ranAfter({ after, before, calls = [] }: Facts): string {
  const checks = after.filter(({ kinds }) => kinds.length > 0);
  if (checks.length > 0) {
    const named = checks.slice(-titleRuns).map((run) => `${run.command} ${describeEnd(run)}`);
    const more = checks.length > titleRuns ? ` and ${checks.length - titleRuns} more` : "";
    return `after the last change ${named.join(", ")}${more}`;
  }
  const [run] = after.slice(-1);
  if (run !== undefined) return `after the last change ${run.command} ${describeEnd(run)} (no known check)`;
  const [call] = calls.slice(-1);
  if (call !== undefined) return `after the last change only ${call} was called (no known check)`;
  const [earlier] = before.slice(-1);
  if (earlier !== undefined) return `${earlier.command} was not run again after the last change`;
  return "nothing was run after the last change";
}

/** Commands that are not known checks only have an exit code: what passed is unknown. */
const describeEnd = ({ kinds, end, exitCode = 0 }: CommandRun): string => {
  if (kinds.length === 0 && (end === "passed" || end === "failed")) return `ended with exit code ${exitCode}`;
  switch (end) {
    case "passed":
      return "passed";
    case "failed":
      return `failed with exit code ${exitCode}`;
    case "hidden":
      return "ended, but its exit code does not say whether it passed";
    case "background":
      return "was started in the background; its end is not known";
    case "running":
      return "was still running when the turn ended";
    case "stopped":
      return "was stopped before it ended";
    case "cancelled":
      return "was cancelled";
  }
};

const claims: Readonly<Record<CheckKind, string>> = {
  test: "tests pass",
  build: "the build succeeds",
  types: "the type check passes",
  lint: "the linter passes",
  check: "the checks pass",
};
const checks: Readonly<Record<CheckKind, string>> = {
  test: "no test",
  build: "no build",
  types: "no type check",
  lint: "no linter",
  check: "no check",
};

type Quote = (command: string) => string;
const plain: Quote = (command) => command;
const asCode: Quote = (command) => {
  const fence = "`".repeat(Math.max(0, ...[...command.matchAll(/`+/g)].map(([run]) => run.length)) + 1);
  return fence.length === 1 ? `\`${command}\`` : `${fence} ${command} ${fence}`;
};

/** Says what the model claims and why no run proves it. */
export function describeClaim(
  { claim, reason, run }: Facts["unproven"][number],
  quote: Quote = asCode,
): string {
  const says = `the model says that ${claims[claim]}`;
  if (reason === "run" && run?.end === "hidden")
    return `${says}, but the exit code of ${quote(run.command)} does not say so`;
  if (reason === "run" && run !== undefined) return `${says}, but ${quote(run.command)} ${describeEnd(run)}`;
  if (reason === "before" && run !== undefined)
    return `${says}, but ${quote(run.command)} was not run again after the last change`;
  return `${says}, but ${checks[claim]} was run after the last change`;
}

/** Describes evidence as Markdown. */
export function renderEvidence(facts: Facts): string {
  const { files, moreFiles = 0, changedBy = [], after, before, calls = [], unproven } = facts;
  const more = moreFiles > 0 ? [`and ${moreFiles} more`] : [];
  const sections = [
    unproven.map((claim) => `**Not confirmed:** ${describeClaim(claim)}.`).join("\n\n"),
    files.length > 0 ? `Changed: ${[...files.map(asCode), ...more].join(", ")}` : "",
    changedBy.length > 0 ? `Files also changed by: ${changedBy.map(asCode).join(", ")}` : "",
    after.length + calls.length === 0
      ? "Nothing was run after the last change."
      : [
          "After the last change:",
          "",
          ...after.map(runLine),
          ...calls.map((call) => `- ${asCode(call)}`),
        ].join("\n"),
    before.length === 0 ? "" : ["Only before the last change:", "", ...before.map(runLine)].join("\n"),
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

const runLine = (run: CommandRun): string => `- ${asCode(run.command)} ${describeEnd(run)}`;
