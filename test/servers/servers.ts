import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { plain } from "../support/editor/clients.ts";
import { Editor } from "../support/editor/editor.ts";
import { startModelServer } from "../support/model/model-server.ts";
import * as reply from "../support/model/reply.ts";
import { findLeftoversWith } from "../support/program/processes.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../support/temp.ts";
import { agentText } from "../support/transcript.ts";
import { findServerProgram, type ListedServer, listedServers, serversFolder } from "./listed-servers.ts";

// Starts real servers from npm with the built program: every tool must be offered with its schema, one call
// must get a result, and no process may remain. Prints a table in Markdown. Arguments: parts of names, to run
// only these servers.

/** Timeout for a server's connection. */
const connectDeadlineMs = 60_000;
const pollMs = 200;
/** Maximum number of tools that a request contains; the program's own limit. */
const sentLimit = 100;
/** Results written by the program itself: the server did not respond. */
const notFromServer =
  /There is no tool|lost its connection|did not answer within|requires authorization|The call was cancelled|^\(no result\)$/;
/** Marks an error that a server reports. */
const serverError = "The error is from the MCP server.";
/** The server's name in the configuration. */
const name = "s";

const missing = listedServers.filter((server) => findServerProgram(server) === undefined);
const [first] = missing;
if (first !== undefined) {
  console.error(
    `Did not run: ${missing.length} of ${listedServers.length} servers are not installed in ${serversFolder}, such as ${first.package}@${first.version}. To install them: npm run servers:install`,
  );
  process.exit(1);
}

const toolsSchema = z.array(
  z.object({
    function: z.object({ name: z.string(), parameters: z.looseObject({ type: z.literal("object") }) }),
  }),
);

interface Row {
  readonly protocol: string;
  readonly tools: string;
  readonly call: string;
}

/** Runs one server. Throws if it does not meet the requirements. */
async function runServer(server: ListedServer): Promise<Row> {
  await using home = await temporaryFolder({}, "fairlead-servers-");
  await using repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  const { args, environment, call } = server;
  const command = [process.execPath, findServerProgram(server) ?? "", ...args];
  await writeConfig(home.path, model.url, {
    mcp: { [name]: { type: "local", command, environment } },
    mcp_tools: "all",
    permission: "allow",
  });
  const editor = new Editor({ home: home.path, cwd: repository.path, client: plain() });
  try {
    await editor.initialize();
    const { sessionId } = await editor.newSession();
    const show = async (text: string) => {
      const before = agentText(editor.updates(sessionId)).length;
      await editor.prompt(sessionId, text);
      return agentText(editor.updates(sessionId)).slice(before);
    };
    let shown = "";
    for (
      let waitedMs = 0;
      waitedMs < connectDeadlineMs && !shown.includes(": connected");
      waitedMs += pollMs
    ) {
      await delay(pollMs);
      shown = await show(`/mcp ${name}`);
      assert.doesNotMatch(shown, /: failed: (?!.*retrying)/);
    }
    const [, count = ""] = /connected; (\d+) tool/.exec(shown) ?? [];
    const [, protocol = ""] = /^Protocol (\S+)$/m.exec(shown) ?? [];
    assert.notEqual(count, "", shown);
    assert.doesNotMatch(shown, /tools left out/);
    let offered = 0;
    model.replyWith((request) => {
      const tools = toolsSchema.parse(request.body["tools"]).map((tool) => tool.function.name);
      offered = tools.filter((tool) => tool.startsWith(`${name}_`)).length;
      return reply.call(`${name}_${call.tool}`, call.arguments);
    });
    model.reply("Done.");
    await editor.prompt(sessionId, "Go");
    const [result = "(no result)"] = model.requests.at(-1)?.toolResults ?? [];
    assert.equal(offered, Math.min(Number(count), sentLimit));
    assert.doesNotMatch(result, notFromServer, `${call.tool} was not answered: ${result.slice(0, 1_000)}`);
    assert.ok(result.includes(call.result ?? ""), `${call.tool} answered: ${result.slice(0, 1_000)}`);
    model.assertClean();
    const end = result.includes(serverError) ? "error of the server" : "result";
    return { protocol, tools: count, call: `\`${call.tool}\`: ${end}` };
  } finally {
    await editor.close();
    await model.close();
    assert.deepEqual(await findLeftoversWith("HOME", home.path), [], "processes are left");
  }
}

const wanted = process.argv.slice(2);
const chosen = listedServers.filter(
  (server) => wanted.length === 0 || wanted.some((part) => server.package.includes(part)),
);
let failures = 0;
console.log("| server | version | protocol | tools | call |\n|---|---|---|---|---|");
for (const server of chosen) {
  const { package: id, version } = server;
  try {
    const { protocol, tools, call } = await runServer(server);
    console.log(`| ${id} | ${version} | ${protocol} | ${tools} | ${call} |`);
  } catch (error) {
    failures++;
    console.log(
      `| ${id} | ${version} | FAILED | | ${error instanceof Error ? error.message : String(error)} |`,
    );
  }
}
console.log(`\n${chosen.length - failures} passed, ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);
