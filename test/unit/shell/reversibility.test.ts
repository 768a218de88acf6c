import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { evaluate } from "../../../src/permission/evaluate.ts";
import { toShellRequests } from "../../../src/permission/shell-requests.ts";
import { analyzeShell } from "../../../src/shell/analysis.ts";
import { context, ruleSets } from "./shell-table.ts";

interface Row {
  /** `undoable`, `unknown` or the reason why the line cannot be undone. */
  verdict: string;
  isEveryday: boolean;
  command: string;
}

/** Reads the sections of the table: a verdict in brackets, then one command line per line. */
function readRows(): Row[] {
  const text = readFileSync(new URL("reversibility.txt", import.meta.url), "utf8");
  const rows: Row[] = [];
  let verdict = "";
  for (const line of text.split("\n").filter((one) => one !== "" && !one.startsWith("# "))) {
    const heading = /^\[(.*)\]$/.exec(line)?.[1];
    if (heading === undefined)
      rows.push({
        verdict: verdict.replace("everyday: ", ""),
        isEveryday: verdict.startsWith("everyday"),
        command: line,
      });
    else verdict = heading;
  }
  return rows;
}

const rows = readRows();

/** Returns the verdict on a line: the first reason, `unknown` if a part is, else `undoable`. */
function findVerdict(command: string): string {
  const facts = analyzeShell(command, context);
  const irreversible = facts.find((effect) => effect.irreversible !== undefined)?.irreversible;
  if (irreversible !== undefined) return irreversible;
  return facts.some(({ hasUnknownEffects }) => hasUnknownEffects) ? "unknown" : "undoable";
}

test("the table has at least 150 lines, and 60 of every day", () => {
  expect(rows.length).toBeGreaterThanOrEqual(150);
  expect(rows.filter(({ isEveryday }) => isEveryday).length).toBeGreaterThanOrEqual(60);
});

test("every line of the table has the expected verdict", () => {
  const wrong = rows
    .map(({ command, verdict }) => ({ command, expected: verdict, found: findVerdict(command) }))
    .filter(({ expected, found }) => expected !== found);
  expect(wrong).toEqual([]);
});

test("statements and commands in a here-document are judged", () => {
  const lines: [line: string, verdict: string][] = [
    ["psql app <<EOF\nselect 1;\nDROP TABLE users;\nEOF", "deletes data of a database"],
    ["psql app <<'EOF'\nselect 1;\nEOF", "undoable"],
    ["cat <<EOF | docker exec -i db psql\ndelete from users;\nEOF", "deletes data of a database"],
    ["bash <<EOF\nset -e\ngit push --force\nEOF", "overwrites the history of a remote"],
    ["cat > drop.sql <<EOF\nDROP TABLE users;\nEOF", "undoable"],
  ];
  for (const [line, verdict] of lines) expect(findVerdict(line), line).toBe(verdict);
});

test("the default asks for what cannot be undone, and says why", () => {
  for (const { command, verdict, isEveryday } of rows.filter((row) => !row.isEveryday)) {
    const found = evaluate(
      toShellRequests(analyzeShell(command, context)).filter(({ permission }) => permission === "bash"),
      ruleSets.defaults,
    );
    expect([command, isEveryday, found.action, found.reason]).toEqual([
      command,
      false,
      "ask",
      `it cannot be undone: ${verdict}`,
    ]);
  }
});

test("the default does not ask to run the commands of every day", () => {
  const asked = rows
    .filter(({ isEveryday }) => isEveryday)
    .flatMap(({ command }) =>
      toShellRequests(analyzeShell(command, context))
        .filter(({ permission }) => permission === "bash")
        .map((request) => ({ command, action: evaluate(request, ruleSets.defaults).action })),
    )
    .filter(({ action }) => action !== "allow");
  expect(asked).toEqual([]);
});

test("the examples of the documentation are as it says", () => {
  const text = readFileSync(new URL("../../../docs/permissions.md", import.meta.url), "utf8");
  const section = text.split("## What cannot be undone\n")[1]?.split("\n## ")[0] ?? "";
  const cells = section
    .split("\n")
    .filter((line) => line.startsWith("| ") && line.includes("`"))
    .map((line) => line.split(" | "));
  const commandsOf = (cell = "") =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, command = ""]) => command.replaceAll("…", "x"));
  const isIrreversible = (command: string) => !["undoable", "unknown"].includes(findVerdict(command));
  const asking = cells.flatMap(([, examples]) => commandsOf(examples));
  const running = cells
    .flatMap(([, , examples]) => commandsOf(examples))
    .filter((one) => one !== "localhost");
  expect([asking.length, running.length].every((count) => count > 15)).toBe(true);
  expect(asking.filter((command) => !isIrreversible(command))).toEqual([]);
  expect(running.filter(isIrreversible)).toEqual([]);
});
