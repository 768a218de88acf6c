import { z } from "zod";
import authorPrompt from "../../prompts/agents/author.md";

/** System prompt of the model that writes agents. */
export const authorInstructions: string = authorPrompt;

const writtenSchema = z.object({
  name: z.string().trim().min(1),
  description: z.string().trim().min(1),
  prompt: z.string().trim().min(1),
});
export type WrittenAgent = z.infer<typeof writtenSchema>;

/** Parses the agent in a model's answer, ignoring text around it. Undefined if there is none. */
export function parseAgent(answer: string): WrittenAgent | undefined {
  const start = answer.indexOf("{");
  const end = answer.lastIndexOf("}");
  if (start < 0 || end < start) return undefined;
  try {
    return writtenSchema.parse(JSON.parse(answer.slice(start, end + 1)));
  } catch {
    return undefined;
  }
}

/** Front matter of an agent file. */
export interface AgentFrontMatter {
  readonly description: string;
  readonly mode: string;
  readonly model?: string | undefined;
  /** Denied permissions. */
  readonly denied: readonly string[];
}

/** Renders an agent's Markdown file. JSON strings are valid YAML. */
export function renderAgentFile(
  { description, mode, model, denied }: AgentFrontMatter,
  prompt: string,
): string {
  const lines = [
    `description: ${JSON.stringify(description.replaceAll(/\s+/g, " "))}`,
    `mode: ${mode}`,
    ...(model === undefined ? [] : [`model: ${JSON.stringify(model)}`]),
    ...(denied.length === 0
      ? []
      : ["permission:", ...denied.map((name) => `  ${JSON.stringify(name)}: deny`)]),
  ];
  return `---\n${lines.join("\n")}\n---\n${prompt.trim()}\n`;
}
