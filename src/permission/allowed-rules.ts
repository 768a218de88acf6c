import { z } from "zod";
import { UserError } from "../base/errors.ts";
import { expandHome } from "./pattern.ts";

const allowedRulesSchema = z.array(z.object({ permission: z.string().min(1), pattern: z.string().min(1) }));

/** Reads a JSON list of permissions and patterns. Throws {@link UserError} if it is invalid. */
export function parseAllowedRules(text: string, home: string): z.infer<typeof allowedRulesSchema> {
  const parsed = allowedRulesSchema.safeParse(parseJson(text));
  if (!parsed.success) throw new UserError("FAIRLEAD_ALLOW is not a JSON list of rules.");
  return parsed.data.map(({ permission, pattern }) => ({ permission, pattern: expandHome(pattern, home) }));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
