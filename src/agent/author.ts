import { z } from "zod";
import authorPrompt from "../../prompts/agents/author.md";

/** What a model is told that writes agents. */
export const authorInstructions: string = authorPrompt;

const writtenSchema = z.object({
  name: z.string().trim().min(1),
  description: z.string().trim().min(1),
  prompt: z.string().trim().min(1),
});
export type WrittenAgent = z.infer<typeof writtenSchema>;

/** The agent in a model's answer, whatever stands around it. Undefined where there is none. */
export function parseWritten(answer: string): WrittenAgent | undefined {
  const start = answer.indexOf("{");
  const end = answer.lastIndexOf("}");
  if (start < 0 || end < start) return undefined;
  try {
    return writtenSchema.parse(JSON.parse(answer.slice(start, end + 1)));
  } catch {
    return undefined;
  }
}

/** What an agent's file holds beside its prompt. */
export interface AgentHead {
  readonly description: string;
  readonly mode: string;
  readonly model?: string | undefined;
  /** Permissions that it does not have. */
  readonly denied: readonly string[];
}

/** An agent's Markdown file. JSON's strings are YAML's too. */
export function agentMarkdown({ description, mode, model, denied }: AgentHead, prompt: string): string {
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
