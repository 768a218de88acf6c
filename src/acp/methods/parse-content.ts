import type { ContentBlock } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import { invalidParams } from "../errors.ts";

const annotationsSchema = z
  .object({ audience: z.array(z.enum(["assistant", "user"])).nullish() })
  .nullish()
  .catch(undefined);
const resourceSchema = z.union([
  z.object({ uri: z.string(), text: z.string(), mimeType: z.string().nullish() }),
  z.object({ uri: z.string(), blob: z.string(), mimeType: z.string().nullish() }),
]);

const blockSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string(), annotations: annotationsSchema }),
  z.object({ type: z.literal("image"), data: z.string(), mimeType: z.string() }),
  z.object({ type: z.literal("audio"), data: z.string(), mimeType: z.string() }),
  z.object({
    type: z.literal("resource_link"),
    name: z.string(),
    uri: z.string(),
    mimeType: z.string().nullish(),
  }),
  z.object({ type: z.literal("resource"), resource: resourceSchema }),
]);

/** Validates prompt content that the protocol's schema does not: steering, and version 2 with its vendor-specific types. */
export function parseContent(blocks: readonly unknown[]): ContentBlock[] {
  return blocks.map((block, index) => {
    const parsed = blockSchema.safeParse(block);
    if (!parsed.success)
      throw invalidParams(
        `The block ${index + 1} of the prompt is not supported: ${firstIssue(parsed.error)}.`,
      );
    return parsed.data;
  });
}

function firstIssue({ issues }: z.ZodError): string {
  return issues[0]?.message ?? "it is not valid";
}
