import { isFinished, type Part, type ToolPart, type ToolState } from "../message/part.ts";
import { type MessageId, newMessageId, newPartId } from "../message/ids.ts";
import type { Agent } from "../agent/agent.ts";
import { type AgentCallsDeps, createToolRunner } from "./agent-calls.ts";
import type { ToolRunner } from "./tool-runner.ts";
import type { Tool } from "../tool/tool.ts";

export type FinishedState = Extract<ToolState, { status: "completed" | "error" }>;

/**
 * Tool calls made by the program itself. They are validated, permitted, shown and limited like the model's calls, but
 * not stored: their results become part of the message that needs them.
 */
export class EphemeralToolCalls {
  readonly #runner: ToolRunner;
  readonly #messageId = newMessageId();
  readonly #newest = new Map<string, ToolPart>();

  constructor(deps: AgentCallsDeps, agent: Agent, tools: readonly Tool[]) {
    const { emit, context } = deps;
    const { sessionId } = context;
    const putPart = (messageId: MessageId, part: Part) => {
      if (part.type === "tool") this.#newest.set(part.id, part);
      emit({ sessionId, type: "part", messageId, part });
    };
    this.#runner = createToolRunner(deps, agent, {
      putPart,
      settleCall: async (messageId, part) => putPart(messageId, part),
      amendParts: async () => {},
    });
    this.#runner.setTools({ tools });
  }

  async run(tool: string, input: unknown, signal: AbortSignal): Promise<FinishedState> {
    const announced = this.#runner.announce(this.#messageId, tool, newPartId());
    await this.#runner.run(this.#messageId, announced, { tool, input }, signal);
    const state = this.#newest.get(announced.id)?.state;
    if (state === undefined || !isFinishedState(state)) throw new Error(`the call of ${tool} did not end`);
    return state;
  }
}

function isFinishedState(state: ToolState): state is FinishedState {
  return isFinished(state);
}
