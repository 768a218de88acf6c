import reminder from "../../prompts/reminders/carried.md";
import type { Carried } from "./part.ts";

/** Renders what a compaction carried over, for the model; empty when there is nothing. */
export function carriedText(carried: Carried): string {
  const sections = [
    section("Earlier messages of the user, oldest first", (carried.requests ?? []).map(quoted)),
    section("Todos", carried.todos ?? []),
    section(
      "Files changed (SHA-256 after the last change)",
      (carried.changed ?? []).map((path) => withHash(path, carried.hashes?.[path])),
    ),
    section("Files read", carried.read ?? []),
    section("Newest plan", carried.plan === undefined ? [] : [carried.plan]),
    section("Last failed command", carried.failed === undefined ? [] : failedLines(carried.failed)),
    section("Jobs that run in the background", (carried.jobs ?? []).map(jobLine)),
    section(
      "Loaded skills",
      (carried.skills ?? []).map(({ text }) => text),
    ),
  ].filter((text) => text !== "");
  return sections.length === 0 ? "" : reminder.trim().replace("{{sections}}", () => sections.join("\n\n"));
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : `## ${title}\n\n${lines.join("\n")}`;
}

function withHash(path: string, hash: string | null | undefined): string {
  if (hash === undefined) return path;
  return hash === null ? `${path} (deleted)` : `${path} (${hash})`;
}

function jobLine({ id, title, taskId }: NonNullable<Carried["jobs"]>[number]): string {
  return `- job ${id}: ${title}${taskId === undefined ? "" : ` (a task, task_id ${taskId})`}`;
}

const quoted = (text: string): string => `<user-message>\n${text}\n</user-message>`;

function failedLines({ command, end, output }: NonNullable<Carried["failed"]>): string[] {
  return [`$ ${command}`, ...(output === "" ? [] : [output]), end];
}
