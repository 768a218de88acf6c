import { stat } from "node:fs/promises";
import type { ServerPrompt } from "../mcp/tools/prompts.ts";
import { newPartId } from "../message/ids.ts";
import type { ModelRef, UserInfo } from "../message/message.ts";
import type { ToolContext } from "../tool/tool.ts";
import type { AgentCallsDeps } from "../tool-calls/agent-calls.ts";
import type { SessionSettings } from "../session-state/session-settings.ts";
import {
  type AnswerEffect,
  type CommandCall,
  type ParsedCommand,
  type Command,
  listCommands,
  parseCommand,
  type PromptEffect,
} from "./commands.ts";
import { addAnswer, addCallAnswer, addQuestion } from "../conversation/command-messages.ts";
import { supportsEffort } from "../session-state/model-choice.ts";
import type { Project } from "../conversation/project.ts";
import { type PromptBlock, type PromptInput, taskBlock, textOf } from "../conversation/prompt-input.ts";
import { requestCompaction } from "../context/request-compaction.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { noTokens, type TurnResult } from "../conversation/turn-result.ts";
import type { UserMessages } from "../user-input/user-messages.ts";

export interface CommandCallsDeps extends Pick<AgentCallsDeps, "gate" | "emit" | "waitUntilReady" | "log"> {
  project(): Project;
  /** Prompts of connected MCP servers. */
  prompts(): readonly ServerPrompt[];
  /** The active plugins. */
  plugins(): AgentCallsDeps["plugins"];
  settings: SessionSettings;
  transcript: Transcript;
  messages: UserMessages;
  /** Shows the user a warning. */
  warn(text: string): void;
}

/** The message for the model, with the agent and model that the command names. */
export interface CommandMessage {
  input: PromptInput;
  agent?: string | undefined;
  model?: ModelRef | undefined;
}

const nothingToSummarize = "There is nothing to summarize yet.";

type Template = PromptEffect & { kind: "template" };

/** Runs slash commands. */
export class CommandCalls {
  readonly #deps: CommandCallsDeps;

  constructor(deps: CommandCallsDeps) {
    this.#deps = deps;
  }

  get all(): readonly Command[] {
    return listCommands(this.#deps.project(), this.#deps.prompts());
  }

  /** Returns the command of a message, if it is one. */
  parse(input: PromptInput): ParsedCommand | undefined {
    return parseCommand(textOf(input), this.all);
  }

  /** Answers a message that calls a command that does not exist. Returns undefined for any other message. */
  async answerUnknown(input: PromptInput, signal: AbortSignal): Promise<TurnResult | undefined> {
    const text = textOf(input);
    if (!text.trimStart().startsWith("/")) return undefined;
    const { describeUnknownCommand, findCommandWord } = await import("./help-command.ts");
    const word = findCommandWord(text);
    if (word === undefined || (await exists(`/${word}`))) return undefined;
    const result = await this.answer(input, async () => describeUnknownCommand(word, this.all), signal);
    return { ...result, command: { name: word, problem: "unknown" } };
  }

  /** Runs a command and stores question and answer for the user; the model sees neither. */
  async answer(
    input: PromptInput,
    run: () => ReturnType<AnswerEffect["run"]>,
    signal: AbortSignal,
  ): Promise<TurnResult> {
    const question = await this.#addQuestion(input);
    const answered = await run();
    const { text, part } = typeof answered === "string" ? { text: answered } : answered;
    await addAnswer(this.#deps.transcript, question, text, part);
    return { end: signal.aborted ? "cancelled" : "finished", tokens: noTokens };
  }

  /** Runs a tool as an answer to the message, and shows the user its result. Stores both as a turn that can be undone. */
  async call(
    input: PromptInput,
    { tool, input: toolInput }: CommandCall,
    context: ToolContext,
  ): Promise<TurnResult> {
    const { createToolRunner } = await import("../tool-calls/agent-calls.ts");
    const { transcript, messages, settings, gate, emit, waitUntilReady, log } = this.#deps;
    await messages.add(input, context, {});
    const question = transcript.messages.findLast(({ info }) => info.role === "user")?.info;
    if (question?.role !== "user") throw new Error("a command without a message");
    const plugins = this.#deps.plugins();
    const calls = {
      project: this.#deps.project(),
      gate,
      context,
      emit,
      waitUntilReady,
      log,
      plugins,
    };
    const runner = createToolRunner(calls, settings.agent, transcript);
    runner.setTools({ tools: [tool] });
    const { signal } = context;
    await addCallAnswer(transcript, question, async (messageId) => {
      const announced = runner.announce(messageId, tool.name, newPartId());
      await runner.run(messageId, announced, { tool: tool.name, input: toolInput }, signal);
      const done = transcript.messages.at(-1)?.parts.find(({ id }) => id === announced.id);
      if (done?.type !== "tool" || done.state.status !== "completed") return undefined;
      return done.state.output;
    });
    return { end: signal.aborted ? "cancelled" : "finished", tokens: noTokens };
  }

  /** Requests a compaction. Returns a result if there is nothing to summarize. */
  async compact(
    input: PromptInput,
    instruction: string,
    signal: AbortSignal,
  ): Promise<TurnResult | undefined> {
    const { transcript, messages } = this.#deps;
    const { estimateMessages } = await import("../message/estimate-request.ts");
    if (estimateMessages(transcript.messages) === 0)
      return this.answer(input, async () => nothingToSummarize, signal);
    const request = { auto: false, commandText: textOf(input), instruction };
    await requestCompaction(transcript, messages.createInfo(input), request);
    return undefined;
  }

  /**
   * Expands a command: the user sees it as typed, the model reads its prompt. Returns a result if there is no message
   * for the model.
   */
  async expand(
    input: PromptInput,
    { command, typed }: ParsedCommand,
    context: ToolContext,
  ): Promise<CommandMessage | TurnResult> {
    const { name } = command;
    const { kind } = command.effect;
    if (kind === "answer" || kind === "compact" || kind === "call") return { input };
    const effect = await this.#limitAgent(command.effect, name);
    const prompt = await this.#prompt(effect, typed, context);
    if (prompt.outcome === "ready")
      return this.#createMessage(input, { command, typed }, effect, prompt.blocks);
    const question = await this.#addQuestion(input);
    if (prompt.outcome === "cancelled") return { end: "cancelled", tokens: noTokens };
    const answer = `The command did not run. ${prompt.reason}`;
    await addAnswer(this.#deps.transcript, question, answer);
    return { end: "finished", tokens: noTokens, command: { name, problem: "not run" } };
  }

  async #prompt(effect: PromptEffect, typed: string, context: ToolContext) {
    const { createCommandPrompt } = await import("./command-prompt.ts");
    const { gate, emit, waitUntilReady, log } = this.#deps;
    const project = this.#deps.project();
    const plugins = this.#deps.plugins();
    const agent = this.#deps.settings.agentNamed(effect.kind === "template" ? effect.agent : undefined);
    const calls = { project, gate, context, emit, waitUntilReady, log, plugins };
    return createCommandPrompt({ calls, agent, tools: await project.tools() }, effect, typed);
  }

  /** Ignores the agent named by an untrusted project if it would replace a more restricted one. */
  async #limitAgent(effect: PromptEffect, command: string): Promise<PromptEffect> {
    if (effect.kind !== "template" || effect.isUntrusted !== true || this.#isTask(effect)) return effect;
    const { agent: current } = this.#deps.settings;
    const named = this.#deps.settings.agentNamed(effect.agent);
    const isFree = current.native && current.limits === undefined;
    if (isFree || named.name === current.name || named.limits !== undefined) return effect;
    this.#deps.warn(
      `/${command} names ${named.name}, but ${current.name} answers: the project's configuration is not trusted.`,
    );
    return { ...effect, agent: undefined };
  }

  async #createMessage(
    input: PromptInput,
    { command: { name }, typed }: ParsedCommand,
    effect: PromptEffect,
    blocks: readonly PromptBlock[],
  ): Promise<CommandMessage> {
    const message = replacePrompt(input, [...blocks, { type: "mentions", text: typed }]);
    if (effect.kind !== "template") return { input: message };
    const { agent } = effect;
    const model = effect.model ?? (await this.#modelWithVariant(effect, name));
    if (!this.#isTask(effect)) return { input: message, agent, model };
    const work = { agent: agent ?? this.#deps.settings.agent.name, model, command: name };
    const task = taskBlock(blocks, work);
    return { input: replacePrompt(input, [task, ...blocks.filter(({ type }) => type !== "text")]) };
  }

  /** Returns the model for the message with the command's effort, if the model supports it. */
  async #modelWithVariant({ agent, variant }: Template, command: string): Promise<ModelRef | undefined> {
    if (variant === undefined) return undefined;
    const model = this.#deps.settings.modelOf(agent);
    if (model === undefined || supportsEffort(model, variant)) return model && { ...model.ref, variant };
    const efforts = model.variants.join(", ") || "none that it knows";
    const name = `${model.ref.provider}/${model.ref.model}`;
    this.#deps.warn(
      `/${command} asks for the effort "${variant}", but ${name} has ${efforts}; the default is used.`,
    );
    return undefined;
  }

  /** Whether a command runs as a task: `subtask` is true, or it names a subagent and `subtask` is not false. */
  #isTask({ agent, subtask }: Template): boolean {
    const isForTasks = agent !== undefined && this.#deps.project().agents.get(agent)?.mode === "subagent";
    return isForTasks ? subtask !== false : subtask === true;
  }

  async #addQuestion(input: PromptInput): Promise<UserInfo> {
    const { transcript, messages } = this.#deps;
    const question: UserInfo = { ...messages.createInfo(input), system: undefined };
    await addQuestion(transcript, question, textOf(input));
    return question;
  }
}

function replacePrompt(input: PromptInput, prompt: readonly PromptBlock[]): PromptInput {
  const blocks = input.blocks.map((block) =>
    block.type === "text" ? { ...block, audience: "person" as const } : block,
  );
  return { ...input, blocks: [...blocks, ...prompt] };
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
