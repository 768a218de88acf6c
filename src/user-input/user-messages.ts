import { newPartId } from "../message/ids.ts";
import type { ModelRef, UserInfo } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import { acceptsMedium } from "../model/request/media.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { ToolContext } from "../tool/tool.ts";
import { supportsEffort } from "../session-state/model-choice.ts";
import type { SessionSettings } from "../session-state/session-settings.ts";
import { getTextLimitBytes } from "../context/context-budget.ts";
import type { MessageDraft } from "./message-hooks.ts";
import type { PromptInput } from "../conversation/prompt-input.ts";
import type { SessionInfoStore } from "../conversation/session-info-store.ts";
import type { Transcript } from "../conversation/transcript.ts";
import type { RecentChange } from "../workspace/recent/recent-changes.ts";

export interface UserMessagesDeps {
  transcript: Transcript;
  infoStore: SessionInfoStore;
  settings: SessionSettings;
  servers: SessionServers;
  /** The active plugins. */
  plugins(): Plugins | undefined;
  /** Shows the user a warning. */
  warn(text: string): void;
}

/** Agent, model and effort for one message, instead of the session's. */
export interface AgentOverride {
  agent?: string | undefined;
  model?: ModelRef | undefined;
  effort?: string | undefined;
}

/** Reminders are texts that no session needs before its first message. */
const loadReminders = () => import("../conversation/reminders.ts");

/** Creates user messages and stores them with the reminders that the model needs. */
export class UserMessages {
  readonly #deps: UserMessagesDeps;
  /** Warnings that the user need not read again. */
  readonly #warnings = new Set<string>();

  constructor(deps: UserMessagesDeps) {
    this.#deps = deps;
  }

  async add(input: PromptInput, context: ToolContext, override: AgentOverride): Promise<void> {
    const news = await context.recent.takeNews();
    const notes = news.length === 0 ? [] : await remindOfNews(news, context);
    return this.#add(input, this.createInfo(input, override), notes, context);
  }

  /** Adds a message during a turn. */
  async addSteering(input: PromptInput, context: ToolContext): Promise<void> {
    const { steerReminder } = await loadReminders();
    return this.#add(input, { ...this.createInfo(input), steering: true }, [steerReminder()], context);
  }

  /** Adds a synthetic message under the new agent, so that the transcript records the hand-over. */
  async addHandOver(): Promise<void> {
    const { transcript } = this.#deps;
    const { handOverReminder } = await loadReminders();
    const last = this.#newest();
    const info = this.createInfo({ blocks: [], ...(last?.system && { system: last.system }) });
    const reminder = handOverReminder(last?.agent ?? info.agent, info.agent, this.#reminderContext(info));
    transcript.addMessage(info);
    transcript.putPart(info.id, synthetic(reminder));
    await transcript.seal(info.id);
  }

  /** Creates the info of a new message. */
  createInfo(input: PromptInput, override: AgentOverride = {}): UserInfo {
    const { transcript, settings, infoStore } = this.#deps;
    const model = override.model ?? infoStore.info.model;
    const effort = "effort" in override ? override.effort : infoStore.info.effort;
    return {
      id: transcript.newMessageId(),
      sessionId: infoStore.info.id,
      role: "user",
      time: { created: Date.now() },
      agent: settings.agentNamed(override.agent).name,
      ...(model && { model }),
      ...(effort !== undefined && { effort }),
      ...(input.system && { system: input.system }),
      ...(input.injectId && { injectId: input.injectId }),
    };
  }

  async #add(
    input: PromptInput,
    info: UserInfo,
    notes: readonly string[],
    context: ToolContext,
  ): Promise<void> {
    const { transcript, infoStore, settings, servers } = this.#deps;
    const { toParts } = await import("./attachments.ts");
    const { dateReminder, planReminder } = await loadReminders();
    const { rules } = settings.agentNamed(info.agent);
    const model = settings.modelFor(info);
    const maxBytes = "code" in model ? undefined : getTextLimitBytes(model);
    const parts = await toParts(input.blocks, context, { rules, resources: servers, maxBytes });
    const draft = await this.#applyHooks({ info, parts }, context.signal);
    const before = this.#reminderContext(info);
    const newest = this.#newest();
    const reminders = [
      ...notes,
      planReminder(info.agent, newest?.agent, before),
      dateReminder(info.time.created, infoStore.info.time.created, before.messages),
    ].filter((text) => text !== undefined);
    transcript.addMessage(draft.info);
    for (const part of [...draft.parts, ...reminders.map(synthetic)]) transcript.putPart(info.id, part);
    await transcript.seal(info.id);
    // The first message makes a session that lists show. After it, the turn's end stores the time.
    if (newest === undefined) await infoStore.save({});
    else infoStore.note({});
    await this.#warnUnseen(info, parts);
    this.#warnMissingEffort(info);
  }

  #reminderContext({ agent }: UserInfo) {
    const { transcript, settings } = this.#deps;
    return {
      messages: transcript.messages,
      hasOwnPrompt: settings.agentNamed(agent).prompt !== undefined,
    };
  }

  async #applyHooks(draft: MessageDraft, signal: AbortSignal): Promise<MessageDraft> {
    const plugins = this.#deps.plugins();
    if (!plugins?.has("chat.message")) return draft;
    const { applyMessageHooks } = await import("./message-hooks.ts");
    return applyMessageHooks(plugins, draft, signal);
  }

  /** Warns the user about attachments that the model does not support. */
  async #warnUnseen(info: UserInfo, parts: readonly Part[]): Promise<void> {
    const model = this.#deps.settings.modelFor(info);
    if ("code" in model) return;
    const files = parts.filter((part) => part.type === "file");
    const unseen = files.filter(({ url, mime }) => url.startsWith("data:") && !acceptsMedium(mime, model));
    if (unseen.length === 0) return;
    const names = unseen.map(({ filename, mime }) => filename ?? mime).join(", ");
    this.#deps.warn(
      `${model.name} cannot see ${names}. Choose a model that supports such files, or describe what is in them.`,
    );
  }

  /** Warns the user once about an effort of the agent that the model does not have. */
  #warnMissingEffort(info: UserInfo): void {
    const { settings } = this.#deps;
    const { name, variant } = settings.agentNamed(info.agent);
    const model = settings.modelFor(info);
    if (variant === undefined || "code" in model || supportsEffort(model, variant)) return;
    if (info.effort !== undefined || info.model?.variant !== undefined) return;
    const efforts = model.variants.join(", ") || "none that it knows";
    const used = model.ref.variant ?? "the default";
    const text = `The agent ${name} asks for the effort "${variant}", but ${model.ref.provider}/${model.ref.model} has ${efforts}; ${used} is used.`;
    if (!this.#warnings.has(text)) this.#deps.warn(text);
    this.#warnings.add(text);
  }

  #newest(): UserInfo | undefined {
    const info = this.#deps.transcript.messages.findLast((message) => message.info.role === "user")?.info;
    return info?.role === "user" ? info : undefined;
  }
}

/** Returns a reminder of the files that other sessions changed; none if the session has seen them. */
async function remindOfNews(news: readonly RecentChange[], context: ToolContext): Promise<string[]> {
  const { describeNews } = await import("../tool/parallel/others.ts");
  const line = describeNews(news, context);
  const { othersChangedReminder } = await loadReminders();
  return line === undefined ? [] : [othersChangedReminder(line)];
}

function synthetic(text: string): Part {
  return { id: newPartId(), type: "text", text, synthetic: true };
}
