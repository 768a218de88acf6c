import { relative } from "node:path";
import type { Agent } from "../agent/agent.ts";
import { getUsableWindow } from "../context/context-budget.ts";
import type { Project } from "../conversation/project.ts";
import { compactionOf } from "../conversation/visible-messages.ts";
import type { Instruction } from "../instruction/instructions.ts";
import { estimateJsonOf, estimateText } from "../message/estimate.ts";
import { estimateOutput, estimatePart } from "../message/estimate-request.ts";
import type { GivenPrompt, Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import type { Tool } from "../tool/tool.ts";
import { isBuiltIn } from "../tool-calls/tool-schema.ts";
import type { AgentOffers, SplitTools } from "../tool-calls/tool-set.ts";
import type { FrozenPrompts, SystemBlock } from "./frozen-prompts.ts";
import { describeChanges } from "./prompt-sources.ts";
import { collectPromptInput, describePrompt } from "./step-request.ts";

export interface ContextUseDeps {
  readonly project: Project;
  readonly offers: AgentOffers;
  readonly agent: Agent;
  readonly model: Model;
  readonly instructions: readonly Instruction[];
  readonly givenPrompt: GivenPrompt | undefined;
  /** When the session began, in milliseconds since 1970. */
  readonly startedAt: number;
  /** The session's system prompts. */
  readonly prompts: FrozenPrompts;
  /** The messages that the model sees. */
  readonly messages: readonly Message[];
}

/** Usage of the context window by the next request. All sizes are estimated tokens. */
export interface ContextUse {
  readonly model: string;
  /** The whole window; undefined if unknown. */
  readonly window: number | undefined;
  /** The size at which the conversation is compacted. */
  readonly usable: number | undefined;
  readonly entries: readonly ContextEntry[];
}

export interface ContextEntry {
  readonly name: string;
  readonly tokens: number;
}

/** Estimates what the next request contains, in the order in which it is sent. Plugins may change its system prompt. */
export async function measureContext(deps: ContextUseDeps): Promise<ContextUse> {
  const { project, offers, agent, model, instructions, messages, prompts } = deps;
  const { tools, onDemand } = await splitTools(deps);
  const servers = project.serverInstructions?.() ?? [];
  const question = { agent, model, tools, onDemand, instructions, servers };
  const need = describePrompt({ ...deps, transcript: { messages } }, question);
  const { blocks, sources } = await prompts.preview(need);
  const reminder = describeChanges(collectPromptInput(deps, question), sources, messages);
  const entries = [
    ...systemEntries(blocks, project.workspace.cwd),
    ...toolEntries(tools, offers),
    ...onDemandEntries(onDemand, blocks),
    ...conversationEntries(messages),
    { name: "Reminder of changes with the next message", tokens: estimateText(reminder?.text ?? "") },
  ];
  return {
    model: `${model.ref.provider}/${model.ref.model}`,
    window: model.limit.context,
    usable: getUsableWindow(model, project.config),
    entries: entries.filter(({ tokens }) => tokens > 0),
  };
}

/** Returns the tools of the next request, and those that are loaded on demand. */
export async function splitTools({
  project,
  offers,
  agent,
  model,
  messages,
}: Pick<ContextUseDeps, "project" | "offers" | "agent" | "model" | "messages">): Promise<SplitTools> {
  const offeredTo = { agents: project.agents, agent };
  const all = [...(await project.tools()), ...offers.taskTools(offeredTo)];
  const tools = offers.tools(all, offeredTo, model, {});
  const input = { tools, model, mode: project.config.mcp_tools, messages };
  return offers.split(tools, offers.estimateOnDemand(offeredTo, input));
}

function systemEntries(blocks: readonly SystemBlock[], cwd: string): ContextEntry[] {
  const sum = (...about: SystemBlock["about"][]) =>
    blocks.reduce(
      (tokens, block) => tokens + (about.includes(block.about) ? estimateText(block.text) : 0),
      0,
    );
  const skills = listLines(blocks, "skills").length;
  const isFile = ({ path }: SystemBlock) => path !== undefined;
  return [
    { name: "System prompt", tokens: sum("prompt", "environment") },
    { name: "System prompt of the editor", tokens: sum("given") },
    { name: `Skills (${skills})`, tokens: sum("skills") },
    { name: "Instructions of MCP servers", tokens: sum("servers") },
    ...blocks.filter(isFile).map(({ path = "", text }) => ({
      name: `Instructions: ${/^https?:/i.test(path) ? path : relative(cwd, path)}`,
      tokens: estimateText(text),
    })),
  ];
}

function toolEntries(tools: readonly Tool[], offers: AgentOffers): ContextEntry[] {
  const specs = new Map(offers.specs(tools).map((spec) => [spec.name, spec]));
  const groups = new Groups();
  for (const tool of tools) {
    const spec = specs.get(tool.name);
    groups.add(originOf(tool), spec === undefined ? 0 : estimateJsonOf(spec));
  }
  return groups.entries();
}

/** Returns the size of the names, which is all that a request contains of these tools. */
function onDemandEntries(tools: readonly Tool[], blocks: readonly SystemBlock[]): ContextEntry[] {
  const lines = listLines(blocks, "on-demand");
  return [...Map.groupBy(tools, originOf)].map(([origin, members]) => ({
    name: `${origin} (${members.length}, loaded on demand)`,
    tokens: estimateText(lines.find((line) => line.startsWith(`- ${members[0]?.server}: `)) ?? ""),
  }));
}

/** Returns the list items of the blocks about a topic. */
function listLines(blocks: readonly SystemBlock[], topic: SystemBlock["about"]): string[] {
  return blocks.flatMap(({ about, text }) =>
    about === topic ? text.split("\n").filter((line) => line.startsWith("- ")) : [],
  );
}

function originOf({ name, source }: Tool): string {
  if (source !== undefined) return `Tools of ${source}`;
  return isBuiltIn(name) ? "Built-in tools" : "Tools of plugins and the project";
}

/** Texts and media of a user message that the user did not type. */
const attached = "Attached files and reminders";

function conversationEntries(messages: readonly Message[]): ContextEntry[] {
  const groups = new Groups(["Summary of earlier messages", "Your messages", attached, "Answers", "Calls"]);
  for (const message of messages) for (const part of message.parts) addPart(groups, message, part);
  return groups.entries();
}

function addPart(groups: Groups, message: Message, part: Part): void {
  const tokens = estimatePart(part);
  if (part.type === "tool") {
    const output = estimateOutput(part);
    groups.add("Calls", tokens - output);
    groups.add(`Results of ${part.tool}`, output);
    return;
  }
  if (tokens > 0) groups.add(kindOf(message, part), tokens);
}

function kindOf(message: Message, part: Part): string {
  const { info } = message;
  if (compactionOf(message) !== undefined || (info.role === "assistant" && info.summary === true))
    return "Summary of earlier messages";
  if (info.role === "assistant") return "Answers";
  const isTyped = part.type === "text" && part.synthetic !== true;
  return isTyped ? "Your messages" : attached;
}

/** Sums by name, in the order given and then in that of the first addition. */
class Groups {
  readonly #groups = new Map<string, { count: number; tokens: number }>();

  constructor(names: readonly string[] = []) {
    for (const name of names) this.#groups.set(name, { count: 0, tokens: 0 });
  }

  add(name: string, tokens: number): void {
    const group = this.#groups.get(name) ?? { count: 0, tokens: 0 };
    this.#groups.set(name, { count: group.count + 1, tokens: group.tokens + tokens });
  }

  entries(): ContextEntry[] {
    return [...this.#groups].map(([name, { count, tokens }]) => ({ name: `${name} (${count})`, tokens }));
  }
}
