import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { estimateTokenCount } from "tokenx";
import type { ModelRequest } from "../support/model/model-server.ts";
import { useSlashes, withSlashes } from "../support/platform/path-spelling.ts";
import type { Family, SceneName } from "./scenes.ts";

/**
 * Maximum tokens of each scene's request, with system prompt and tools: for the family `small`, and for the
 * others.
 */
const budgets: Readonly<Record<SceneName, { small: number; others: number }>> = {
  first: { small: 3_300, others: 6_000 },
  "tool-step": { small: 3_400, others: 6_150 },
  plan: { small: 3_900, others: 6_600 },
  "build-after-plan": { small: 4_000, others: 6_700 },
  "last-step": { small: 3_500, others: 6_250 },
  compaction: { small: 3_800, others: 6_800 },
  "after-compaction": { small: 3_700, others: 6_400 },
  explore: { small: 2_100, others: 2_700 },
  general: { small: 2_700, others: 4_000 },
  title: { small: 350, others: 350 },
  "project-instructions": { small: 3_500, others: 6_200 },
  mcp: { small: 6_000, others: 9_000 },
  image: { small: 3_400, others: 6_150 },
};

/** Maximum tokens of the reminders in a scene's request. */
export const reminderBudgets = { plan: 520, "build-after-plan": 620, "last-step": 100 } as const;

export const getBudget = (family: Family, scene: SceneName): number =>
  budgets[scene][family === "small" ? "small" : "others"];

/** Estimates the tokens of the reminders in the messages. */
export const countReminderTokens = (messages: string): number =>
  estimateTokenCount(messages.match(/<system-reminder>[^]*?<\/system-reminder>/g)?.join("\n") ?? "");

/** The folder of temporary files: on macOS and Windows its path is long. */
const temporary = realpathSync.native(tmpdir());

/**
 * Estimates the tokens of a request without its images, which models count differently, as if the folder of temporary
 * files had a short path.
 */
export function countRequestTokens({ body, messages }: Pick<ModelRequest, "body" | "messages">): number {
  const text = useSlashes(JSON.stringify([messages, body.tools]), [temporary]);
  return estimateTokenCount(
    text.replaceAll(withSlashes(temporary), "/tmp").replaceAll(/data:image\/\w+;base64,[\w+/=]+/g, ""),
  );
}
