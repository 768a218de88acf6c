import { z } from "zod";
import description from "../../../prompts/tools/multiedit.md";
import { editedPathSchema, editSchema, otherNamesOfTexts, prepareEdits } from "./edit.ts";
import { getOutsideAccess, otherNamesOfPath } from "../paths.ts";
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
    filePath: otherNamesOfPath,
    edits: ["changes", "replacements"],
    ...otherNamesOfTexts,
    replaceAll: ["all", "global"],
  },
  description,
  input: inputSchema,
  kind: "edit",
  concurrency: "exclusive",
  access: ({ filePath }, context) =>
    getOutsideAccess(context, [filePath], { verb: "Edit", permission: "edit" }),
  prepare: ({ filePath, edits }, context) => prepareEdits(context, filePath, edits),
});
