// The client that MCP's conformance suite starts: `fairlead acp` with the suite's server, whose address is
// the last argument, a scripted model that calls the server's tools, and a user who accepts and opens every
// address.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { CreateElicitationRequest, CreateElicitationResponse } from "@agentclientprotocol/sdk";
import { withElicitation } from "../editor/clients.ts";
import { Editor } from "../editor/editor.ts";
import { startModelServer, type ModelRequest } from "../model/model-server.ts";
import * as reply from "../model/reply.ts";
import { temporaryFolder, writeConfig } from "../temp.ts";
import { agentText } from "../transcript.ts";

/** Timeout for a connection, or an authorization. */
const connectDeadlineMs = 12_000;
const pollMs = 50;
/** After this time without a connection, the user starts the authorization by command: the editor is asked once. */
const patienceMs = 3_000;
/** Number of rounds of calls: the first one, and one after each further authorization. */
const roundsLimit = 3;

/** What the scenario gives to its client. */
const contextSchema = z.object({
  client_id: z.string().optional(),
  client_secret: z.string().optional(),
  toolCalls: z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) })).optional(),
});
const toolsSchema = z.array(
  z.object({ function: z.object({ name: z.string(), parameters: z.record(z.string(), z.unknown()) }) }),
);
const parametersSchema = z.object({
  properties: z.record(z.string(), z.looseObject({ type: z.unknown() })).catch({}),
  required: z.array(z.string()).catch([]),
});

const name = "suite";
/** The document for that scenario; others ignore it. */
const clientMetadataUrl = "https://conformance-test.local/client-metadata.json";
const url = process.argv.at(-1) ?? "";
const context = contextSchema.parse(JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}"));

await using home = await temporaryFolder({}, "fairlead-conformance-");
await using work = await temporaryFolder({}, "fairlead-conformance-");
const model = await startModelServer();
const { client_id: clientId, client_secret: clientSecret } = context;
await writeConfig(home.path, model.url, {
  mcp: { [name]: { type: "remote", url, oauth: { clientId, clientSecret, clientMetadataUrl } } },
  permission: { [`${name}_*`]: "allow" },
});

const kind = withElicitation(accept);
kind.capabilities = { elicitation: { form: {}, url: {} } };
const editor = new Editor({ home: home.path, cwd: work.path, client: kind });
try {
  await editor.initialize();
  const { sessionId } = await editor.newSession();
  model.reply("Hello.");
  await editor.prompt(sessionId, "Hello");
  let isOver = (await waitForConnection(sessionId)) !== "connected";
  for (let round = 0; round < roundsLimit && !isOver; round++) {
    model.replyWith(callAll).otherwise("Done.");
    await editor.prompt(sessionId, "Call all tools");
    const results = model.requests.at(-1)?.toolResults ?? [];
    for (const result of results) console.error(result);
    isOver = !results.some((result) => result.includes("requires authorization"));
    if (!isOver) isOver = (await waitForConnection(sessionId)) !== "connected";
  }
} finally {
  await editor.close();
  await model.close();
}

/** Returns the server's state when it no longer changes, or at the deadline. */
async function waitForConnection(sessionId: string): Promise<string> {
  const end = performance.now() + connectDeadlineMs;
  let state = "";
  let hasAsked = false;
  while (performance.now() < end) {
    if (state === "needs" && !hasAsked && end - performance.now() < connectDeadlineMs - patienceMs) {
      hasAsked = true;
      await editor.prompt(sessionId, `/mcp auth ${name}`);
    }
    const before = agentText(editor.updates(sessionId)).length;
    await editor.prompt(sessionId, `/mcp`);
    const text = agentText(editor.updates(sessionId)).slice(before);
    state = new RegExp(`\\*\\*${name}\\*\\*: (\\w+)`).exec(text)?.[1] ?? "";
    if (state === "connected" || (state === "failed" && !text.includes("retrying"))) break;
    await delay(pollMs);
  }
  console.error(`The server is ${state}.`);
  return state;
}

function callAll(request: ModelRequest): reply.Step[] {
  const tools = toolsSchema.parse(request.body["tools"]).map((tool) => tool.function);
  const offered = tools.filter((tool) => tool.name.startsWith(`${name}_`));
  console.error(`Offered: ${offered.map((tool) => tool.name).join(", ")}`);
  const wanted = context.toolCalls?.map((one) => reply.call(`${name}_${one.name}`, one.arguments));
  return wanted ?? offered.map((tool) => reply.call(tool.name, examplesFor(tool.parameters)));
}

/** Returns a value for each required parameter. */
function examplesFor(schema: Record<string, unknown>): Record<string, unknown> {
  const { properties, required } = parametersSchema.parse(schema);
  const examples: Record<string, unknown> = {
    string: "text",
    number: 1,
    integer: 1,
    boolean: true,
    array: [],
  };
  return Object.fromEntries(
    required.map((parameter) => [parameter, examples[String(properties[parameter]?.type)] ?? {}]),
  );
}

/** Fills in forms with their defaults, and opens addresses like a browser. */
async function accept(request: CreateElicitationRequest): Promise<CreateElicitationResponse> {
  if (request.mode === "url") {
    const page = await fetch(String(request.url));
    console.error(`The page ends with HTTP ${page.status}.`);
    await page.body?.cancel();
  }
  return { action: "accept", content: {} };
}
