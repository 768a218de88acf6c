// The least that an agent can do: one file, hand-written JSON-RPC, server-sent events in, updates out, calls run.
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { Agent, request } from "node:http";

const http = new Agent({ keepAlive: true });
const shownBytes = 30_000;
let sessions = 0;
let outputs = 0;
let rest = "";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const update = (sessionId, update) => send({ method: "session/update", params: { sessionId, update } });

process.stdin.setEncoding("utf8").on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) answer(JSON.parse(line));
});
process.stdin.on("end", () => process.exit());

function answer({ id, method, params }) {
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
  if (method === "session/new") send({ id, result: { sessionId: `s${sessions++}` } });
  if (method === "session/prompt") void runTurn(id, params.sessionId, params.prompt[0].text);
}

async function runTurn(id, sessionId, content) {
  const messages = [{ role: "user", content }];
  for (let calls = await ask(sessionId, messages); calls.length > 0; calls = await ask(sessionId, messages)) {
    messages.push({ role: "assistant", tool_calls: calls });
    for (const call of calls) messages.push(await runCall(sessionId, call));
  }
  send({ id, result: { stopReason: "end_turn" } });
}

/** Relays one answer of the model. Resolves with its calls. */
function ask(sessionId, messages) {
  const { promise, resolve } = Promise.withResolvers();
  const calls = [];
  const url = `${process.env.MODEL_URL}/chat/completions`;
  const post = request(url, { method: "POST", agent: http }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (chunk) => {
      const events = (text + chunk).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) relay(event, sessionId, calls);
    });
    response.on("end", () => resolve(calls));
  });
  post.end(JSON.stringify({ messages, tools: [] }));
  return promise;
}

function relay(event, sessionId, calls) {
  if (event === "data: [DONE]") return;
  const delta = JSON.parse(event.slice(6)).choices[0]?.delta;
  if (delta?.tool_calls) calls.push(...delta.tool_calls);
  if (!delta?.content) return;
  update(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: delta.content } });
}

async function runCall(sessionId, { id, function: { name, arguments: text } }) {
  update(sessionId, { sessionUpdate: "tool_call", toolCallId: id, title: name, status: "in_progress" });
  const input = JSON.parse(text);
  const content = name === "read" ? await readFile(input.filePath, "utf8") : await runShell(input.command);
  update(sessionId, { sessionUpdate: "tool_call_update", toolCallId: id, status: "completed" });
  return { role: "tool", tool_call_id: id, content };
}

/** The end of an output is answered, the whole is kept in a file. */
function runShell(command) {
  const { promise, resolve } = Promise.withResolvers();
  const child = spawn("bash", ["-c", command], { stdio: ["ignore", "pipe", "pipe"] });
  let tail = Buffer.alloc(0);
  child.stdout.on("data", (chunk) => {
    tail = chunk.length < shownBytes ? Buffer.concat([tail, chunk]).subarray(-shownBytes) : chunk;
  });
  const file = child.stdout.pipe(createWriteStream(`${process.env.HOME}/output-${outputs++}`));
  file.on("close", () => resolve(tail.subarray(-shownBytes).toString()));
  return promise;
}
