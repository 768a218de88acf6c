import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import builtInSchemas from "../../../schema/tools.json" with { type: "json" };
import { newPartId } from "../../../src/message/ids.ts";
import { toolKinds, type ToolPart } from "../../../src/message/part.ts";
import { presentCall, presentedTools } from "../../../src/tool/presentation.ts";

const tools = Object.keys(builtInSchemas);

test("no file in acp/ names a tool", async () => {
  const folder = join(import.meta.dirname, "../../../src/acp");
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".ts"));
  const kinds: ReadonlySet<string> = new Set(toolKinds);
  const names = tools.filter((name) => !kinds.has(name));
  const quoted = new RegExp(`["'\`](${names.join("|")})["'\`]`, "g");
  const compared = /\.tool\s*(===|!==|in\b)/g;
  const found = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(folder, file), "utf8");
      return [...text.matchAll(quoted), ...text.matchAll(compared)].map(([hit]) => `${file}: ${hit}`);
    }),
  );
  expect(files.length).toBeGreaterThan(30);
  expect(found.flat()).toEqual([]);
});

test("each presenter belongs to a built-in tool", () => {
  expect(presentedTools.filter((name) => !tools.includes(name))).toEqual([]);
});

const time = { start: 1, end: 2 };

function stored(tool: string, state: Partial<ToolPart["state"] & { status: "completed" }>): ToolPart {
  const id = newPartId();
  const completed = { status: "completed", output: "", time, ...state } as const;
  return { id, type: "tool", callId: id, tool, state: completed };
}

test("a stored command without kind and title is shown as a command", () => {
  const metadata = { exitCode: 2 };
  const part = stored("bash", { input: { command: "make" }, output: "no rule\n\n[exit code 2]", metadata });
  expect(presentCall(part)).toEqual({
    kind: "execute",
    title: "make",
    hasCard: true,
    hasFailed: true,
    command: { printed: "no rule", exitCode: 2, signal: null },
    result: { type: "output", text: "no rule\n\n[exit code 2]" },
  });
});

test("shows a stored task with its child session and without notes for the model", () => {
  const sessionId = "ses_0123456789abcdef0123456789abcdef";
  const output = "Done.\n\n<task_metadata>\ntask_id: x\n</task_metadata>";
  expect(presentCall(stored("task", { output, metadata: { sessionId, agent: "general" } }))).toMatchObject({
    child: { sessionId, agent: "general" },
    result: { type: "report", text: "Done." },
  });
});

test("calls that change the todo list have no card", () => {
  expect(["todowrite", "todoread"].map((tool) => presentCall(stored(tool, {})).hasCard)).toEqual([
    false,
    false,
  ]);
});

test("a question about one file is shown as reading, others as searching", () => {
  const kindOf = (operation: string) =>
    presentCall({ ...stored("lsp", { input: { operation } }), kind: "search" }).kind;
  expect(["hover", "diagnostics", "findReferences"].map(kindOf)).toEqual(["read", "read", "search"]);
});

test("a call that was rejected before it had a title shows its main argument", () => {
  const part: ToolPart = { ...stored("glob", { input: { pattern: "**/*.ts" } }), kind: "search" };
  expect(presentCall(part).title).toBe("Search **/*.ts");
});
