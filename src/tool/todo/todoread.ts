import { z } from "zod";
import description from "../../../prompts/tools/todoread.md";
import { defineTool } from "../tool.ts";
import { describeTodos, describeProgress } from "./todowrite.ts";

const inputSchema = z.object({});

export const todoreadTool = defineTool({
  name: "todoread",
  otherNames: ["todo_read", "read_todos", "get_todos"],
  description,
  input: inputSchema,
  kind: "think",
  concurrency: "shared",
  async prepare(_input, context) {
    return {
      title: describeProgress(context.todos.read()),
      locations: [],
      permissions: [{ permission: "todoread", subjects: [{ text: "*" }], always: ["*"] }],
      run: async () => ({ status: "completed", output: describeTodos(context.todos.read()) }),
    };
  },
});
