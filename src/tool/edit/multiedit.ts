import { z } from "zod";
import description from "../../../prompts/tools/multiedit.md";
import { editedPathSchema, editSchema, prepareEdits } from "./edit.ts";
import { getOutsideAccess } from "../paths.ts";
import { defineTool } from "../tool.ts";

const editCountLimit = 100;

const inputSchema = z.object({
  filePath: editedPathSchema,
  edits: z
    .array(editSchema)
    .min(1)
    .max(editCountLimit)
    .describe("The edits, each on the result of the one before"),
});
type Input = z.infer<typeof inputSchema>;

export const multieditTool = defineTool<Input>({
  name: "multiedit",
  otherNames: ["multi_edit", "multi_edit_file", "edit_multiple"],
  aliases: {
    filePath: [
      "path",
      "file",
      "filename",
      "file_path",
      "file_name",
      "absolute_path",
      "target_file",
      "filepath",
      "relative_path",
      "uri",
    ],
    edits: ["changes", "replacements"],
    oldString: ["old_str", "old_string", "old_text", "search", "old", "find", "search_text", "original"],
    newString: [
      "new_str",
      "new_string",
      "new_text",
      "replace",
      "new",
      "replacement",
      "replace_text",
      "updated",
    ],
    replaceAll: ["all", "global"],
  },
  description,
  input: inputSchema,
  kind: "edit",
  concurrency: "exclusive",
  access: ({ filePath }, context) => getOutsideAccess(context, [filePath], { permission: "edit" }),
  prepare: ({ filePath, edits }, context) => prepareEdits(context, filePath, edits),
});
