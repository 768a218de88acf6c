// A small agent for the harness's own tests. The prompt's text selects its behavior in a turn.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  agent,
  methods,
  ndJsonStream,
  type AgentContext,
  type SessionUpdate,
  type StopReason,
} from "@agentclientprotocol/sdk";

interface Turn {
  sessionId: string;
  client: AgentContext;
  update: (update: SessionUpdate) => Promise<void>;
  cancelled: Promise<void>;
}

const sessions = new Map<string, { cancel: () => void; cancelled: Promise<void> }>();

const turns: Record<string, (turn: Turn) => Promise<StopReason>> = {
  async hello(turn) {
    await turn.update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "Easy." } });
    await say(turn, "Hello ");
    await say(turn, "there.");
    return "end_turn";
  },
  async tool(turn) {
    await announce(turn);
    await turn.update({ sessionUpdate: "tool_call_update", toolCallId: "call-a", status: "completed" });
    return "end_turn";
  },
  async ask(turn) {
    await announce(turn);
    const { outcome } = await turn.client.request(methods.client.session.requestPermission, {
      sessionId: turn.sessionId,
      toolCall: { toolCallId: "call-a", title: "Write a file" },
      options: [
        { optionId: "yes", name: "Allow", kind: "allow_once" },
        { optionId: "no", name: "Reject", kind: "reject_once" },
      ],
    });
    const allowed = outcome.outcome === "selected" && outcome.optionId === "yes";
    const status = allowed ? "completed" : "failed";
    await turn.update({ sessionUpdate: "tool_call_update", toolCallId: "call-a", status });
    return outcome.outcome === "cancelled" ? "cancelled" : "end_turn";
  },
  async wait(turn) {
    await say(turn, "Waiting.");
    await turn.cancelled;
    return "cancelled";
  },
  async late(turn) {
    setTimeout(() => void say(turn, "Too late."), 20);
    return "end_turn";
  },
  async noise() {
    process.stdout.write("a stray line\n");
    return "end_turn";
  },
  async read(turn) {
    const path = join(process.cwd(), "buffer.txt");
    const { content } = await turn.client.request(methods.client.fs.readTextFile, {
      sessionId: turn.sessionId,
      path,
    });
    await say(turn, content);
    return "end_turn";
  },
  async form(turn) {
    const answer = await turn.client.request(methods.client.elicitation.create, {
      mode: "form",
      sessionId: turn.sessionId,
      message: "Which one?",
      requestedSchema: { type: "object", properties: {} },
    });
    await say(turn, answer.action);
    return "end_turn";
  },
  async model(turn) {
    await say(turn, await askModel());
    return "end_turn";
  },
  async linger() {
    setInterval(() => {}, 1000);
    return "end_turn";
  },
};

await agent({ name: "fake" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true },
    agentInfo: { name: "fake", version: "1.0.0" },
  }))
  .onRequest(methods.agent.session.new, () => ({ sessionId: open(`fake-${sessions.size + 1}`) }))
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    await say(turnOf(open(params.sessionId), client), "Replayed.");
    return {};
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const [block] = params.prompt;
    const name = block?.type === "text" ? block.text : "";
    open(params.sessionId);
    const run = turns[name] ?? turns.hello;
    return { stopReason: run ? await run(turnOf(params.sessionId, client)) : "refusal" };
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.cancel())
  .connect(
    ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>),
  ).closed;

function open(sessionId: string): string {
  const { promise, resolve } = Promise.withResolvers<void>();
  sessions.set(sessionId, { cancel: resolve, cancelled: promise });
  return sessionId;
}

function turnOf(sessionId: string, client: AgentContext): Turn {
  const update = (update: SessionUpdate) =>
    client.notify(methods.client.session.update, { sessionId, update });
  return { sessionId, client, update, cancelled: sessions.get(sessionId)?.cancelled ?? Promise.resolve() };
}

function say({ update }: Turn, text: string): Promise<void> {
  return update({
    sessionUpdate: "agent_message_chunk",
    messageId: "message-a",
    content: { type: "text", text },
  });
}

function announce({ update }: Turn): Promise<void> {
  return update({
    sessionUpdate: "tool_call",
    toolCallId: "call-a",
    title: "Write a file",
    status: "pending",
  });
}

/** Asks the model of the global configuration, without streaming. */
async function askModel(): Promise<string> {
  const path = join(process.env.HOME ?? "", ".config/fairlead/fairlead.json");
  const config: { provider: { test: { options: { baseURL: string } } } } = JSON.parse(
    await readFile(path, "utf8"),
  );
  const answer = await fetch(`${config.provider.test.options.baseURL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "Who are you?" }] }),
  });
  const body: { choices: { message: { content: string } }[] } = JSON.parse(await answer.text());
  return body.choices.map(({ message }) => message.content).join("");
}
