import { expect, test } from "vitest";
import { story } from "../../support/editor/story.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";

const trace = {
  traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  tracestate: "vendor=abc",
  baggage: "team=blue",
};

/** An MCP server whose tool returns the `_meta` of the call. */
const server = `
import { createInterface } from "node:readline";
const tools = [{ name: "meta", inputSchema: { type: "object" } }];
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const results = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "m", version: "1" } },
    "tools/list": { tools },
    "tools/call": { content: [{ type: "text", text: JSON.stringify(params?._meta ?? null) }] },
  };
  if (id === undefined) continue;
  const answer = method in results ? { result: results[method] } : { error: { code: -32601, message: "unknown" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\\n");
}`;
const config = {
  mcp: { m: { type: "local", command: [process.execPath, "server.mjs"] } },
  permission: "allow",
};
const print = reply.call("bash", { command: 'echo "$TRACEPARENT|$TRACESTATE|$BAGGAGE"' });

test("the trace context of a prompt reaches models, MCP servers, commands and tasks", async () => {
  await story({ config, files: { "server.mjs": server } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const isOfTask = ({ messages }: ModelRequest) => JSON.stringify(messages[1]).includes("Print it");
    model.when(isOfTask, ({ toolResults }) => (toolResults.length === 0 ? print : "Printed."));
    model
      .reply(reply.call("m_meta", {}))
      .reply(reply.call("task", { description: "Print", prompt: "Print it", subagent_type: "general" }))
      .reply(print)
      .reply("Done.")
      .reply(print)
      .reply("Without.");
    const prompt = [{ type: "text" as const, text: "Go" }];
    await editor.request("session/prompt", { sessionId, prompt, _meta: trace });
    const requests = [...model.requests];
    expect(requests).toHaveLength(6);
    for (const { headers } of requests) {
      expect(headers).toMatchObject({ traceparent: trace.traceparent, tracestate: trace.tracestate });
      expect(headers).not.toHaveProperty("baggage");
    }
    const results = requests.flatMap(({ toolResults }) => toolResults).join("\n");
    expect(results).toContain(JSON.stringify(trace).slice(1, -1));
    expect(results.split(`${trace.traceparent}|vendor=abc|team=blue`)).toHaveLength(3);
    // A prompt must not inject a header, and the next turn has no trace context.
    const bad = { traceparent: `${trace.traceparent}\r\nx: y` };
    await editor.request("session/prompt", { sessionId, prompt, _meta: bad });
    const later = model.requests.slice(requests.length);
    for (const { headers } of later) expect(headers).not.toHaveProperty("traceparent");
    expect(later.at(-1)?.toolResults.at(-1)).toBe("||");
  });
});
