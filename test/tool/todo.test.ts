import { expect, test } from "vitest";
import { describeInputProblem, describeUnknownTool } from "../../src/tool/invalid.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { todoreadTool } from "../../src/tool/todo/todoread.ts";
import { todowriteTool } from "../../src/tool/todo/todowrite.ts";
import { call, prepare, toolPlace } from "./tool-place.ts";

const todos = [
  { content: "Look", status: "completed", priority: "high" },
  { content: "Fix", status: "in_progress", priority: "medium" },
];
const described = "1 of 2 todos done:\n- [completed] Look (high)\n- [in_progress] Fix (medium)";

test("the list is replaced, shown and read again", async () => {
  await using place = await toolPlace();
  expect(await call(todoreadTool, {}, place)).toEqual({ status: "completed", output: "The list is empty." });
  expect(await call(todowriteTool, { todos }, place)).toEqual({ status: "completed", output: described });
  expect(place.context.todos.read()).toEqual(todos);
  expect(await call(todoreadTool, {}, place)).toEqual({ status: "completed", output: described });
  await call(todowriteTool, { todos: [] }, place);
  expect(place.context.todos.read()).toEqual([]);
});

test("each tool needs its own permission, and nothing is written before", async () => {
  await using place = await toolPlace();
  const write = await prepare(todowriteTool, { todos }, place);
  const read = await prepare(todoreadTool, {}, place);
  expect([...write.permissions, ...read.permissions]).toEqual([
    { permission: "todowrite", subjects: [{ text: "*" }], always: ["*"] },
    { permission: "todoread", subjects: [{ text: "*" }], always: ["*"] },
  ]);
  expect(place.context.todos.read()).toEqual([]);
});

test("invalid arguments are named field by field", () => {
  const parsed = todowriteTool.input.safeParse({ todos: [{ content: 1, status: "done", priority: "low" }] });
  expect(parsed.success ? "" : describeInputProblem(parsed.error)).toBe(
    [
      "Invalid arguments. Call the tool again with these fixed:",
      "- todos[0].content: Invalid input: expected string, received number",
      '- todos[0].status: Invalid option: expected one of "pending"|"in_progress"|"completed"|"cancelled"',
    ].join("\n"),
  );
  const none = todowriteTool.input.safeParse("text");
  expect(none.success ? "" : describeInputProblem(none.error)).toContain(
    "- the arguments: Invalid input: expected object",
  );
});

test("a todo without a priority has medium priority", () => {
  const todos = [{ content: "Look", status: "pending" }];
  expect(todowriteTool.input.parse({ todos })).toEqual({ todos: [{ ...todos[0], priority: "medium" }] });
});

test("reports the first of many problems, and how many more there are", () => {
  const parsed = todowriteTool.input.safeParse({ todos: Array.from({ length: 30 }, () => 1) });
  const lines = parsed.success ? [] : describeInputProblem(parsed.error).split("\n");
  expect([lines.length, lines.at(-1)]).toEqual([6, "- and 26 more problems"]);
});

test("an unknown tool returns all names, the nearest first", () => {
  const tools = [todoreadTool, todowriteTool, readTool];
  expect(describeUnknownTool("my.cat_file", "my.cat_file", tools)).toBe(
    'There is no tool "my.cat_file". Use one of these: read, todowrite, todoread.',
  );
  expect(describeUnknownTool("x", "x", [])).toBe(
    'There is no tool "x", and no other can be used now. Answer in text.',
  );
});

test("entries are short, because the user sees the whole list", () => {
  const entry = (length: number) => ({ content: "x".repeat(length), status: "pending", priority: "low" });
  expect(todowriteTool.input.safeParse({ todos: [entry(1_000)] }).success).toBe(true);
  const parsed = todowriteTool.input.safeParse({ todos: [entry(1_001)] });
  expect(parsed.success ? "" : describeInputProblem(parsed.error)).toMatch(
    /^- todos\[0\]\.content: Too big/m,
  );
});
