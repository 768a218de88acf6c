// The least that an agent can do: one file, hand-written JSON-RPC, server-sent events in, updates out.
import { request } from "node:http";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
let rest = "";

process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) answer(JSON.parse(line));
});
process.stdin.on("end", () => process.exit());

function answer({ id, method, params }) {
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
  if (method === "session/new") send({ id, result: { sessionId: "s" } });
  if (method === "session/prompt") relay(id, params.sessionId);
}

function relay(id, sessionId) {
  const post = request(process.env.MODEL_URL + "/chat/completions", { method: "POST" }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (chunk) => {
      const events = (text + chunk).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) relayEvent(event, sessionId);
    });
    response.on("end", () => send({ id, result: { stopReason: "end_turn" } }));
  });
  post.end("{}");
}

function relayEvent(event, sessionId) {
  if (event === "data: [DONE]") return;
  const delta = JSON.parse(event.slice(6)).choices[0]?.delta.content;
  if (!delta) return;
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: delta } };
  send({ method: "session/update", params: { sessionId, update } });
}
