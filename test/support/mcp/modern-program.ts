// An MCP server for the protocol of 2026-07-28 over stdio. The first argument is a file to which it appends
// the name of each received method, the second its version. The third argument names a fault, if there is
// one.
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { z } from "zod";
import { createModernServer } from "./modern-server.ts";

const [memory = "/dev/null", version = "1.0.0", fault] = process.argv.slice(2);
const messageSchema = z.object({ id: z.union([z.string(), z.number()]).optional(), method: z.string() });

const remember = (line: string) => {
  const message = messageSchema.safeParse(JSON.parse(line));
  if (message.success) appendFileSync(memory, `${message.data.method}\n`);
  return message.data;
};

if (fault === undefined) {
  createInterface({ input: process.stdin }).on("line", remember);
  serveStdio(() => createModernServer(version), { legacy: "reject" });
} else createInterface({ input: process.stdin }).on("line", (line) => misbehave(fault, remember(line)));

function misbehave(kind: string, message: z.infer<typeof messageSchema> | undefined): void {
  if (message?.id === undefined) return;
  const { id, method } = message;
  const send = (answer: object) =>
    void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
  const complete = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
  switch (method) {
    case "initialize":
      return send({ error: { code: -32_022, message: "Unsupported", data: { supported: ["2026-07-28"] } } });
    case "server/discover":
      if (kind === "silent") return undefined;
      if (kind === "dies") process.exit(1);
      return send({
        result: { ...complete, supportedVersions: ["2026-07-28"], capabilities: { tools: {} } },
      });
    case "tools/list": {
      const names = ["echo", "twice"];
      const tools = names.map((name) => ({ name, inputSchema: { type: "object" } }));
      return send({ result: { ...complete, tools } });
    }
    default:
      return answerCall(kind, send);
  }
}

function answerCall(kind: string, send: (answer: object) => void): void {
  switch (kind) {
    case "no-result-type":
      return send({ result: { content: [] } });
    case "unknown-result-type":
      return send({ result: { resultType: "hologram", content: [] } });
    case "endless-input":
      return send({ result: { resultType: "input_required", requestState: "again" } });
    case "giant-answer":
      return send({
        result: { resultType: "complete", content: [{ type: "text", text: "x".repeat(2 ** 25) }] },
      });
    default:
      return process.exit(1);
  }
}
