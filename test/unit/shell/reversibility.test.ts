import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { evaluate } from "../../../src/permission/judge.ts";
import { toShellRequests } from "../../../src/tool/command-analysis.ts";
import { analyzeShell } from "../../../src/shell/analysis.ts";
import { context, ruleSets } from "./shell-table.ts";

interface Row {
  /** `undoable`, `unknown` or the reason why the line cannot be undone. */
  verdict: string;
  isEveryday: boolean;
  command: string;
}

const everyday: Readonly<Record<string, string>> = {
  "Run: can be undone, or change nothing": "undoable",
  "Run: whether they can be undone is unknown": "unknown",
};

/** Reads the page: a verdict as a heading, then one command line per line of a block. */
function readRows(): Row[] {
  const text = readFileSync(new URL("../../../docs/reversible-commands.md", import.meta.url), "utf8");
  return [...text.matchAll(/^##+ (.*)\n\n```text\n([^]*?)\n```$/gm)].flatMap(([, heading = "", lines = ""]) =>
    lines.split("\n").map((command) => ({
      verdict: everyday[heading] ?? heading,
      isEveryday: heading in everyday,
      command,
    })),
  );
}

const rows = readRows();

/** Returns the verdict on a line: the first reason, `unknown` if a part is, else `undoable`. */
function findVerdict(command: string): string {
  const facts = analyzeShell(command, context);
  const irreversible = facts.find((effect) => effect.irreversible !== undefined)?.irreversible;
  if (irreversible !== undefined) return irreversible;
  return facts.some(({ hasUnknownEffects }) => hasUnknownEffects) ? "unknown" : "undoable";
}

test("the table has at least 150 lines, 60 of them everyday commands", () => {
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

test("scripts of the project are judged by their text", () => {
  const files: Record<string, string> = {
    "package.json": JSON.stringify({
      scripts: {
        up: "npm run build && npm publish",
        indirect: "npm run up",
        loop: "npm run loop; npm run loop",
        postversion: "git push --follow-tags",
        version: "echo version",
        build: "tsc",
      },
    }),
    Makefile:
      "V = 1\n.PHONY: all\nall: upload\n\techo $(V)\n\nupload:\n\t@$(CURL) -s x\n\t-docker push $(IMAGE)\n\nclean:\n\trm -rf dist\n",
    justfile: "up version:\n    gh release create {{version}}\n\ntest:\n  npm test\n",
  };
  const readText = (path: string) => files[path.slice(context.cwd.length + 1)];
  const reason = (line: string) =>
    analyzeShell(line, { ...context, readText }).find(({ irreversible }) => irreversible)?.irreversible;
  const lines: [line: string, reason: string | undefined][] = [
    ["npm run up", "publishes a package"],
    ["yarn indirect", "publishes a package"],
    ["npm run loop", undefined],
    ["npm run version", "sends commits to a remote"],
    ["npm run build", undefined],
    ["make all", "publishes a container image"],
    ["make clean", undefined],
    ["just up 1.0", "publishes a release"],
    ["just test", undefined],
  ];
  expect(lines.map(([line]) => [line, reason(line)])).toEqual(lines);
});

test("the default asks for irreversible commands, and gives the reason", () => {
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

test("the default does not ask for everyday commands", () => {
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

test("the examples in the documentation have the documented verdicts", () => {
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
