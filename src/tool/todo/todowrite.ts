import { z } from "zod";
import description from "../../../prompts/tools/todowrite.md";
import { todoSchema } from "../../message/message.ts";
import type { Todo } from "../../message/message.ts";
import { defineTool } from "../tool.ts";

const todoLimit = 100;
/** Characters; the editor shows the whole list in a panel. */
const contentLimit = 1_000;

const entrySchema = todoSchema.extend({
  content: todoSchema.shape.content.max(contentLimit).describe("What to do, in a few words"),
  status: todoSchema.shape.status.describe("Its state now"),
  priority: todoSchema.shape.priority.default("medium").describe("How urgent it is"),
});
const inputSchema = z.object({
  todos: z.array(entrySchema).max(todoLimit).describe("The whole list as it is from now on"),
});
type Input = z.infer<typeof inputSchema>;

export const todowriteTool = defineTool<Input>({
  name: "todowrite",
  otherNames: [
    "todo_write",
    "update_plan",
    "todo",
    "write_todos",
    "update_todos",
    "manage_todo_list",
    "todo_list",
    "set_todos",
  ],
  aliases: {
    todos: ["items", "plan", "list", "todo_list", "tasks"],
    content: ["text", "task", "title", "step", "description"],
    status: ["state"],
  },
  description,
  input: inputSchema,
  kind: "think",
  concurrency: "exclusive",
  async prepare({ todos }, context) {
    return {
      title: describeProgress(todos),
      locations: [],
      permissions: [{ permission: "todowrite", subjects: [{ text: "*" }], always: ["*"] }],
      run: async () => {
        await context.todos.write(todos);
        return { status: "completed", output: describeTodos(todos) };
      },
    };
  },
});

/** Formats the list for the model. */
export function describeTodos(todos: readonly Todo[]): string {
  if (todos.length === 0) return "The list is empty.";
  const lines = todos.map(({ content, status, priority }) => `- [${status}] ${content} (${priority})`);
  return [`${describeProgress(todos)}:`, ...lines].join("\n");
}

export function describeProgress(todos: readonly Todo[]): string {
  const done = todos.filter(({ status }) => status === "completed").length;
  return `${done} of ${todos.length} todos done`;
}
