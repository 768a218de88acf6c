import { z } from "zod";
import { isSame } from "../base/memoize.ts";
import type { SessionId } from "../message/ids.ts";
import type { JsonStore } from "../storage/json/json-store.ts";

/** The possible subjects of a block of the system prompt. */
export const blockTopics = [
  "prompt",
  "environment",
  "skills",
  "servers",
  "on-demand",
  "instructions",
  "given",
] as const;

/** A block of the system prompt and what it is about. */
export interface SystemBlock {
  readonly about: (typeof blockTopics)[number];
  readonly text: string;
  /** The path of an instruction file. */
  readonly path?: string | undefined;
}

/** Maximum number of system prompts that a session stores: one per model and kind of agent, the oldest go first. */
const maxPrompts = 4;

const frozenPromptSchema = z.object({
  /** Identifies the model and everything that the agent and the client contribute. */
  key: z.string(),
  /** The digest of the tools with which it was built. */
  tools: z.string(),
  /** The context window for which it was built, in tokens. */
  window: z.number().optional(),
  blocks: z.array(z.object({ about: z.enum(blockTopics), text: z.string(), path: z.string().optional() })),
  /** The digests of its sources. */
  sources: z.record(z.string(), z.string()),
});
export type FrozenPrompt = z.infer<typeof frozenPromptSchema>;

const storedSchema = z.object({ prompts: z.array(frozenPromptSchema) });

/** The system prompt that a request needs. */
export interface PromptNeed extends Pick<FrozenPrompt, "key" | "tools" | "window"> {
  /** Whether a provider can have the conversation in its cache. */
  readonly isCached: boolean;
  /** Builds the prompt from its current sources. */
  build(): Pick<FrozenPrompt, "blocks" | "sources">;
}

/**
 * The system prompts of a session, stored in `session_prompt/<sessionId>`. A prompt stays the same while a provider can
 * have it in its cache, also after a restart.
 */
export class FrozenPrompts {
  readonly #id: SessionId;
  readonly #files: JsonStore;
  #prompts: readonly FrozenPrompt[] | undefined;

  constructor(id: SessionId, files: JsonStore) {
    this.#id = id;
    this.#files = files;
  }

  /** Returns the frozen prompt; builds it if there is none or if the conversation is not cached with it. */
  async get(need: PromptNeed): Promise<FrozenPrompt> {
    return (await this.#find(need)) ?? this.#replace(await this.#findKey(need), need);
  }

  /** Returns what {@link get} would return, without storing it. */
  async preview(need: PromptNeed): Promise<Pick<FrozenPrompt, "blocks" | "sources">> {
    return (await this.#find(need)) ?? need.build();
  }

  /** Builds the prompt for the current context window. Returns whether it changed. */
  async refit(need: PromptNeed): Promise<boolean> {
    const known = await this.#findKey(need);
    if (known === undefined || known.window === need.window) return false;
    const { blocks } = await this.#replace(known, need);
    return !isSame(joinBlocks(known.blocks), joinBlocks(blocks));
  }

  /** Forgets the prompts after earlier messages changed, because no cache has the conversation any more. */
  forget(): void {
    this.#prompts = [];
  }

  /** Returns the frozen prompt if the conversation can be cached with it. */
  async #find(need: PromptNeed): Promise<FrozenPrompt | undefined> {
    const known = await this.#findKey(need);
    return known?.tools === need.tools && need.isCached ? known : undefined;
  }

  async #findKey({ key }: PromptNeed): Promise<FrozenPrompt | undefined> {
    return (await this.#load()).find((prompt) => prompt.key === key);
  }

  async #load(): Promise<readonly FrozenPrompt[]> {
    this.#prompts ??= (await this.#files.read(["session_prompt", this.#id], storedSchema))?.prompts ?? [];
    return this.#prompts;
  }

  async #replace(known: FrozenPrompt | undefined, need: PromptNeed): Promise<FrozenPrompt> {
    const { key, tools, window } = need;
    const built = { key, tools, ...(window !== undefined && { window }), ...need.build() };
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(built)) return known;
    const others = (await this.#load()).filter((other) => other !== known);
    const prompts = [...others, built].slice(-maxPrompts);
    await this.#files.write(["session_prompt", this.#id], { prompts });
    this.#prompts = prompts;
    return built;
  }
}

/** Copies the stored system prompts to a fork, whose requests then begin with the same bytes. */
export async function copyPrompts(files: JsonStore, from: SessionId, to: SessionId): Promise<void> {
  const stored = await files.read(["session_prompt", from], storedSchema);
  if (stored !== undefined) await files.write(["session_prompt", to], stored);
}

/** Returns the texts of the system prompt: one for each topic. */
export function joinBlocks(blocks: readonly SystemBlock[]): string[] {
  const topics = Map.groupBy(blocks, ({ about }) => about);
  return [...topics.values()].map((group) => group.map(({ text }) => text).join("\n\n"));
}
