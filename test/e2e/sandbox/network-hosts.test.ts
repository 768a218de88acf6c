import { describe, expect, test } from "vitest";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { listen, type Listening } from "../../support/listen.ts";
import * as reply from "../../support/model/reply.ts";
import { findBubblewrapProblem } from "./sandbox-problem.ts";

const problem = await findBubblewrapProblem();
const story = storiesOfOneAgent();

/**
 * Requests each of its arguments through the proxy of the environment: `host:port` by CONNECT, addresses as a plain
 * request. Fails if one is refused.
 */
const client = `
const http = require("http");
const proxy = new URL(process.env.HTTP_PROXY);
const basic = "Basic " + Buffer.from(proxy.username + ":" + proxy.password).toString("base64");
const base = { host: proxy.hostname, port: proxy.port, headers: { "proxy-authorization": basic } };
const get = (target) => new Promise((done) => {
  const read = (response) => {
    let text = "";
    response.on("data", (data) => (text += data)).on("end", () => done([response.statusCode, text.trim()]));
  };
  if (target.startsWith("http:")) return http.get({ ...base, path: target }, read);
  http.request({ ...base, method: "CONNECT", path: target }).on("connect", (response, socket) => {
    if (response.statusCode !== 200) return done([response.statusCode, ""]);
    http.get({ createConnection: () => socket, path: "/tunnel" }, read);
  }).end();
});
(async () => {
  for (const target of process.argv.slice(2)) {
    const [status, text] = await get(target);
    console.log(status, text);
    if (status !== 200) process.exitCode = 1;
  }
})();
`;
const files = { "get.js": client };

/** A server that answers with the path of the request. */
const echo = () => listen((request, response) => response.end(request.url));

/** Runs commands in a new session whose approval setting is Sandboxed, and returns their results. */
async function run({ editor, model }: StoryContext, ...commands: string[]): Promise<string[]> {
  const { sessionId } = await editor.newSession();
  await editor.setConfigOption(sessionId, "approval", "sandboxed");
  for (const command of commands) model.reply(reply.call("bash", { command }));
  model.reply("Done.");
  await editor.prompt(sessionId, "Go");
  const results = model.requests.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
  return results.map(({ content }) => String(content));
}

const toConfig = (hosts: readonly string[]) => ({ sandbox: { network: { hosts } } });
const portOf = ({ port }: Listening) => `localhost:${port}`;

describe.runIf(problem === undefined)("a command in the sandbox", () => {
  test("reaches configured hosts by CONNECT and plain requests, and no other", async () => {
    await using allowed = await echo();
    await using other = await echo();
    const config = toConfig([portOf(allowed), "*.example.org"]);
    await story({ config, files, permission: "reject_once" }, async (context) => {
      const [result = ""] = await run(
        context,
        `node get.js ${portOf(allowed)} http://${portOf(allowed)}/plain?a=b ${portOf(other)}`,
      );
      expect(result).toContain("200 /tunnel\n200 /plain?a=b\n403");
      expect(result).toContain(`[Blocked by the sandbox: it may not connect to ${portOf(other)}.]`);
      expect(result).toContain("[It did not run again: the user did not allow it.");
      expect(context.editor.permissionRequests).toHaveLength(1);
    });
  });

  test("runs again with a host that the user allows, and always stores the host", async () => {
    await using one = await echo();
    await using two = await echo();
    await story({ files, permission: "allow_always" }, async (context) => {
      const command = `node get.js ${portOf(one)} && node get.js ${portOf(two)}`;
      const [first, second] = await run(context, command, command);
      expect(first).toContain("200 /tunnel\n200 /tunnel");
      for (const host of [one, two])
        expect(first).toContain(
          `because it may not connect to ${portOf(host)}; the output above is of another run, with the connection.]`,
        );
      expect(second).toBe("200 /tunnel\n200 /tunnel");
      const asked = context.editor.permissionRequests;
      expect(asked.map(({ options }) => options[1]?.name)).toEqual(
        [one, two].map((host) => `Always allow connections to \`${portOf(host)}\` in this session`),
      );
      expect(JSON.stringify(asked[0]?.toolCall.content)).toContain(
        `Asked because it failed in the sandbox: it may not connect to ${portOf(one)}`,
      );
    });
  });

  test("does not ask about a host that a rule denies", async () => {
    await using denied = await echo();
    const config = { permission: { connect: { [portOf(denied)]: "deny" } }, ...toConfig([portOf(denied)]) };
    await story({ config, files, permission: "allow_once" }, async (context) => {
      const [failed, tolerated] = await run(
        context,
        `node get.js ${portOf(denied)}`,
        `node get.js ${portOf(denied)} || true`,
      );
      expect(failed).toContain("[It did not run again: a rule denies it.]");
      expect(tolerated).toContain(`[Blocked by the sandbox: it may not connect to ${portOf(denied)}.]`);
      expect(context.editor.permissionRequests).toEqual([]);
    });
  });

  test("may reset its connections at any time", async () => {
    await using allowed = await echo();
    const reset = `
const proxy = new URL(process.env.HTTP_PROXY);
const basic = Buffer.from(proxy.username + ":" + proxy.password).toString("base64");
let open = 0;
for (const line of ["CONNECT ${portOf(allowed)}", "CONNECT a.invalid:443", "GET http://${portOf(allowed)}/", "nonsense"]) {
  open++;
  const socket = require("net").connect(proxy.port, proxy.hostname, () => {
    socket.write(line + " HTTP/1.1\\r\\nProxy-Authorization: Basic " + basic + "\\r\\n\\r\\n");
  });
  socket.on("data", () => socket.resetAndDestroy()).on("error", () => {}).on("close", () => --open || console.log("closed"));
}`;
    const config = toConfig([portOf(allowed)]);
    await story({ config, files: { ...files, "reset.js": reset } }, async (context) => {
      const [closed, after] = await run(context, "node reset.js", `node get.js ${portOf(allowed)}`);
      expect(closed).toContain("closed");
      expect(after).toBe("200 /tunnel");
    });
  });

  test("cannot use the proxy without its password, or reach this computer by a wildcard", async () => {
    await using port = await echo();
    await story({ config: toConfig(["*:*"]), files, permission: "reject_once" }, async (context) => {
      const [unnamed, wildcard] = await run(
        context,
        `HTTP_PROXY=http://a:b@$(echo $HTTP_PROXY | sed 's/.*@//') node get.js ${portOf(port)}`,
        `node get.js ${portOf(port)}`,
      );
      expect(unnamed).toMatch(/^407/);
      expect(wildcard).toMatch(/^403/);
    });
  });

  test("reaches a server that an earlier command left in the background", async () => {
    const server = `require("http").createServer((q, r) => r.end("served")).listen(0, "127.0.0.1", function () {
      require("fs").writeFileSync("port", String(this.address().port)); console.log("listening"); });`;
    const use = `require("http").get("http://127.0.0.1:" + require("fs").readFileSync("port"), (r) => r.pipe(process.stdout))`;
    await story({ files: { "server.js": server, "use.js": use } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setConfigOption(sessionId, "approval", "sandboxed");
      model
        .reply(reply.call("bash", { command: "node server.js", background: true }))
        .reply(reply.call("bash", { command: "node use.js" }))
        .reply(reply.call("job", { action: "stop", job: 1 }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const results = model.requests.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
      expect(String(results[0]?.content)).toContain("listening");
      expect(String(results[1]?.content)).toBe("served");
    });
  });
});
