import { z } from "zod";

/** A model as `provider/model`, with an optional variant (its reasoning effort). */
export const modelRefSchema = z.object({
  provider: z.string(),
  model: z.string(),
  variant: z.string().optional(),
});
export type ModelRef = z.infer<typeof modelRefSchema>;
