import { distance } from "fastest-levenshtein";
import type { z } from "zod";

/** More problems than these are not told at once. */
const problemLimit = 10;

/** No program can be given a NUL character. */
export const hasNoNul = (text: string): boolean => !text.includes("\0");

/** What the model reads when it calls a tool that there is not: all names, the nearest first. */
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

/** What the model reads when arguments do not fit the tool: for each problem the field and what was expected of it. */
export function describeInputProblem(error: z.ZodError): string {
  const lines = error.issues
    .slice(0, problemLimit)
    .map((issue) => `- ${formatFieldPath(issue.path)}: ${issue.message}`);
  const rest = error.issues.length - lines.length;
  const more = rest > 0 ? [`- and ${rest} more problems`] : [];
  return ["The arguments do not fit. Call the tool again with these put right:", ...lines, ...more].join(
    "\n",
  );
}

function formatFieldPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the arguments";
  const parts = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`));
  return parts.join("").replace(/^\./, "");
}
