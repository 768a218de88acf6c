import { acceptedContent, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";

const asked = z.object({ name: z.string() });

/** A server on the official package for the protocol of 2026-07-28. `more`: names of further tools. */
export function createModernServer(version: string, more: readonly string[] = []): McpServer {
  const server = new McpServer(
    { name: "modern", version },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true },
        prompts: {},
        logging: {},
      },
      instructions: "Greet before you echo.",
    },
  );
  const echo = ({ text }: { text: string }) => ({ content: [{ type: "text" as const, text }] });
  const input = { inputSchema: z.object({ text: z.string() }) };
  for (const name of ["echo", ...more])
    server.registerTool(name, { ...input, description: `The tool ${name}.` }, echo);
  const region = z.string().meta({ "x-mcp-header": "Region" });
  server.registerTool("route", { inputSchema: z.object({ region }) }, ({ region }) => ({
    content: [{ type: "text", text: `Routed to ${region}.` }],
  }));
  server.registerTool("greet", { inputSchema: z.object({}) }, (_, { mcpReq }) => {
    const answer = acceptedContent(mcpReq.inputResponses, "who", asked);
    if (answer !== undefined) return { content: [{ type: "text", text: `Hello, ${answer.name}!` }] };
    const question = inputRequired.elicit({ message: "Who are you?", requestedSchema: asked });
    return inputRequired({ inputRequests: { who: question }, requestState: "greeting" });
  });
  server.registerTool("think", { inputSchema: z.object({}) }, (_, { mcpReq }) => {
    const answer = mcpReq.inputResponses?.["thought"];
    if (answer !== undefined) return { content: [{ type: "text", text: JSON.stringify(answer) }] };
    const thought = inputRequired.createMessage({
      messages: [{ role: "user", content: { type: "text", text: "How many?" } }],
      maxTokens: 10,
    });
    return inputRequired({ inputRequests: { thought }, requestState: "thinking" });
  });
  server.registerTool("visit", { inputSchema: z.object({}) }, (_, { mcpReq }) => {
    const answer = mcpReq.inputResponses?.["page"];
    if (answer !== undefined) return { content: [{ type: "text", text: JSON.stringify(answer) }] };
    const page = inputRequired.elicitUrl({ message: "Sign in.", url: "https://example.com/sign-in" });
    return inputRequired({ inputRequests: { page }, requestState: "visiting" });
  });
  server.registerTool("work", { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
    const { progressToken } = mcpReq._meta ?? {};
    if (progressToken !== undefined)
      await mcpReq.notify({
        method: "notifications/progress",
        params: { progressToken, progress: 1, total: 2, message: "half" },
      });
    // Long enough for the client to handle the progress before the answer.
    await delay(500, undefined, { signal: mcpReq.signal });
    return { content: [{ type: "text", text: "Worked." }] };
  });
  server.registerResource("note", "note://1", { description: "A note." }, (uri) => ({
    contents: [{ uri: uri.href, text: "Buy milk." }],
  }));
  return server;
}
