import { distance } from "fastest-levenshtein";
import type { z } from "zod";

/** Problems reported at once. */
const problemLimit = 10;

/** Arguments of programs cannot contain a NUL character. */
export const hasNoNul = (text: string): boolean => !text.includes("\0");

/** Message for the model when a tool does not exist: all names, the nearest first. */
export function describeUnknownTool(tool: string, available: readonly string[]): string {
  if (available.length === 0)
    return `There is no tool ${JSON.stringify(tool)}, and no other can be used now.`;
  const wanted = tool.toLowerCase();
  const nearest = [...available].sort(
    (one, two) =>
      distance(wanted, one.toLowerCase()) - distance(wanted, two.toLowerCase()) || one.localeCompare(two),
  );
  return `There is no tool ${JSON.stringify(tool)}. Use one of these: ${nearest.join(", ")}.`;
}

/** Message for the model when arguments are invalid: each field with what was expected. */
export function describeInputProblem(error: z.ZodError): string {
  const lines = error.issues
    .slice(0, problemLimit)
    .map((issue) => `- ${formatFieldPath(issue.path)}: ${issue.message}`);
  const rest = error.issues.length - lines.length;
  const more = rest > 0 ? [`- and ${rest} more problems`] : [];
  return ["Invalid arguments. Call the tool again with these fixed:", ...lines, ...more].join("\n");
}

function formatFieldPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the arguments";
  const parts = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`));
  return parts.join("").replace(/^\./, "");
}
