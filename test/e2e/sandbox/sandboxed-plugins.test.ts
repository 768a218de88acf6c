import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type StoryOptions, story } from "../../support/editor/story.ts";
import { listen } from "../../support/listen.ts";
import * as reply from "../../support/model/reply.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { thoughtText } from "../../support/transcript.ts";
import { findBubblewrapProblem } from "./sandbox-problem.ts";

const problem = await findBubblewrapProblem();
const outside = `/var/tmp/fairlead-plugin-${process.pid}.txt`;

/** Tries operations that a sandbox may refuse, and adds their outcome to the result of each command. */
const tries = `
import * as fs from "node:fs";
import * as http from "node:http";
const trial = (name, run) => { try { return name + ": " + run(); } catch (error) { return name + ": " + error.code; } };
const connect = (target) => new Promise((done) => {
  const proxy = process.env.HTTP_PROXY && new URL(process.env.HTTP_PROXY);
  if (!proxy) return done("direct");
  const basic = Buffer.from(proxy.username + ":" + proxy.password).toString("base64");
  http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: target,
    headers: { "proxy-authorization": "Basic " + basic } }).on("connect", (response) => done(response.statusCode)).end();
});
export const tryAll = async (options, directory) => [
  "options: " + Object.keys(options),
  trial("workspace", () => fs.writeFileSync(directory + "/made.txt", "x") ?? "written"),
  trial("hook", () => fs.writeFileSync(directory + "/.git/hooks/pre-commit", "x") ?? "written"),
  trial("outside", () => fs.writeFileSync(options.outside, "x") ?? "written"),
  trial("secret", () => fs.readFileSync(directory + "/.env", "utf8")),
  trial("keys", () => fs.readFileSync(process.env.HOME + "/.config/fairlead/fairlead.json", "utf8").slice(0, 1)),
  "network: " + (await connect(options.host)),
].join("\\n");
`;
const plugin = `
import { tryAll } from "./tries.mjs";
export const Guard = async ({ directory }, options) => ({
  "tool.execute.after": async (input, output) => {
    output.output += "\\n" + options.name + "\\n" + (await tryAll(options, directory));
  },
});
`;
/** A plugin next to the configuration, which contains keys. */
const free = `export default async () => ({ "tool.execute.after": (_, o) => { o.output += "\\nfree " + (process.env.TMPDIR ?? "none"); } });\n`;

const files: StoryOptions["files"] = { ".env": "SECRET", ".git/hooks/sample": "" };
const homeFiles = {
  ".config/fairlead/guards/guard.mjs": plugin,
  ".config/fairlead/guards/other.mjs": plugin,
  ".config/fairlead/guards/tries.mjs": tries,
  ".config/fairlead/free.mjs": free,
  ".config/fairlead/beside.mjs": free.replace("free ", "beside "),
};

describe.runIf(problem === undefined)("a plugin with a sandbox in its entry", () => {
  test("runs in it, with the network of its entry; others run outside, in order", async () => {
    await using port = await listen(() => {});
    const host = `localhost:${port.port}`;
    const network = { hosts: [host] };
    const config = {
      plugin: [
        ["./guards/guard.mjs", { sandbox: true, name: "confined", outside, host }],
        "./free.mjs",
        ["./guards/other.mjs", { sandbox: { network }, name: "connected", outside, host }],
        ["./beside.mjs", { sandbox: true }],
      ],
    };
    await story({ files, homeFiles, config, env: { TMPDIR: "/var/tmp" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo 1" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const common =
        "options: name,outside,host\nworkspace: written\nhook: EROFS\noutside: EROFS\nsecret: EACCES\nkeys: EACCES\nnetwork:";
      const result = model.requests.at(-1)?.toolResults.at(-1);
      expect(result).toMatch(
        new RegExp(
          `^1\nconfined\n${common} 403\nfree /var/tmp\nconnected\n${common} 200\nbeside .*/fairlead-sandbox-.*/tmp$`,
        ),
      );
      expect(existsSync(outside)).toBe(false);
      expect(thoughtText(editor.updates(sessionId))).not.toContain("switched off");
    });
  });

  test("of a project runs in it after consent, and is restarted without the others", async () => {
    const project = {
      ...files,
      "fairlead.json": JSON.stringify({
        plugin: [["./.fairlead/plugins/guard.mjs", { sandbox: true, name: "project", outside, host: "a:1" }]],
      }),
      ".fairlead/plugins/guard.mjs": plugin,
      ".fairlead/plugins/tries.mjs": tries.replace("export const", "export default async () => ({});\n$&"),
      ".fairlead/plugins/ends.mjs": `export default async () => ({ "tool.execute.before": () => process.exit(3) });\n`,
    };
    await story({ files: project, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo 1" })).reply(reply.call("bash", { command: "echo 2" }));
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests.at(-1)?.toolResults.at(-1)).toContain("2\nproject\noptions: name,outside,host\n");
      expect(model.requests.at(-1)?.toolResults.at(-1)).toContain("outside: EROFS");
      const notice = thoughtText(editor.updates(sessionId));
      expect(notice).toContain("ends.mjs was switched off");
      expect(notice).not.toContain("guard.mjs was switched off");
    });
  });
});

const echo = async (options: StoryOptions, expected: readonly (string | RegExp)[]) => {
  await story({ homeFiles, ...options }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "echo 1" })).reply("Done.");
    await editor.prompt(sessionId, "Go");
    // The plugin without it still runs.
    expect(model.requests.at(-1)?.toolResults.at(-1)).toMatch(/^1\nfree /);
    for (const text of expected) expect(thoughtText(editor.updates(sessionId))).toMatch(text);
  });
};
const entries = (sandbox: unknown) => ["./free.mjs", ["./beside.mjs", { sandbox }]];

test.runIf(process.platform === "linux")("a plugin is not used without a sandbox", async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, "none"));
  const env = { PATH: join(folder.path, "none") };
  await echo({ config: { plugin: entries(true), permission: { bash: "allow" } }, env }, [
    /beside\.mjs is not used: its entry sets "sandbox"\. Commands cannot run in a sandbox: bubblewrap \(bwrap\) is not installed\./,
  ]);
});

test("a plugin is not used if the sandbox is off, or its setting is invalid", async () => {
  await echo({ config: { plugin: entries(true), sandbox: "off" } }, [
    /beside\.mjs is not used: its entry sets "sandbox"\. The configuration sets "sandbox" to "off"\. Remove one of the two\./,
  ]);
  await echo({ config: { plugin: entries("yes") } }, [
    /fairlead\.json: plugin: \.\/beside\.mjs is not used: "sandbox" in its entry must be true, false or \{"network": …\}/,
  ]);
});
