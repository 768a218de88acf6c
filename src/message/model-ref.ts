import { z } from "zod";
import { hasOnly } from "../base/validator.ts";

/** A model as `provider/model`, with an optional variant (its reasoning effort). */
export const modelRefSchema = z.object({
  provider: z.string(),
  model: z.string(),
  variant: z.string().optional(),
});
export type ModelRef = z.infer<typeof modelRefSchema>;

/** Same result as the schema, without building it. */
export function isModelRef(value: unknown): value is ModelRef {
  if (!hasOnly(value, ["provider", "model", "variant"])) return false;
  const { provider, model, variant } = value;
  return isText(provider) && isText(model) && (variant === undefined || isText(variant));
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}
