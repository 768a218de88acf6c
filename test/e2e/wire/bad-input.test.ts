import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { newSessionId } from "../../../src/message/ids.ts";
import { plain } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import type { ModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { opensWindowsPaths } from "../../support/platform/platform.ts";
import { collectUnrequestedMessages } from "../../support/editor/silence.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, thoughtText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const launcher = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));
const globalConfig = ".config/fairlead/fairlead.json";
const secret = "sk-very-secret-0123456789";

/** The server as configured when its environment lacks variables. */
const without = (isLeftOut: string): string[] => [
  "--input-type=module",
  "-e",
  `for (const name of Object.keys(process.env)) if (${isLeftOut}) delete process.env[name];
   process.argv = [process.argv[0], ${JSON.stringify(launcher)}, "acp"];
   await import(${JSON.stringify(pathToFileURL(launcher).href)});`,
];

/** Checks that the agent still answers. */
async function expectUsable(editor: Editor, model: ModelServer): Promise<void> {
  const { sessionId } = await editor.newSession();
  model.reply("I work.");
  await editor.prompt(sessionId, "Do you work?");
  expect(agentText(editor.updates(sessionId))).toBe("I work.");
}

describe("without a model", () => {
  test("answers a prompt with advice, and the session works once there is a model", async () => {
    await story({ initialize: false }, async ({ editor, home, model }) => {
      await home.write({ [globalConfig]: "{}" });
      await editor.initialize();
      const { sessionId, configOptions } = await editor.newSession();
      expect(configOptions?.map(({ id }) => id)).not.toContain("model");
      const failure = await expectFailure(editor.prompt(sessionId, "Hi"));
      expect(failure).toMatchObject({
        code: -32000,
        message: expect.stringMatching(/^Authentication required: .*fairlead/),
      });
      expect(failure.data).toEqual({ details: failure.message, kind: "config", retryable: false });
      expect(await expectFailure(editor.request("authenticate", { methodId: "fairlead" }))).toMatchObject({
        code: -32000,
      });
      const provider = {
        test: { options: { baseURL: model.url, apiKey: "test-key" }, models: { scripted: {} } },
      };
      await home.write({ [globalConfig]: JSON.stringify({ model: "test/scripted", provider }) });
      expect(await editor.request("authenticate", { methodId: "fairlead" })).toEqual({});
      await expectUsable(editor, model);
    });
  });

  test("a configured model that does not exist is named", async () => {
    await story({ config: { model: "nowhere/gpt" } }, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({
        code: -32000,
        message: expect.stringContaining("nowhere/gpt"),
      });
    });
  });
});

describe("a key that the provider refuses", () => {
  test("is answered with the provider's message, without the key", async () => {
    await story({ initialize: false }, async ({ editor, home, model }) => {
      const provider = {
        test: { options: { baseURL: model.url, apiKey: secret }, models: { scripted: {} } },
      };
      await home.write({ [globalConfig]: JSON.stringify({ model: "test/scripted", provider }) });
      await editor.initialize();
      const { sessionId } = await editor.newSession();
      model.reply(reply.failure(401, `Incorrect API key provided: ${secret}.`));
      const failure = await expectFailure(editor.prompt(sessionId, "Hi"));
      expect(failure).toMatchObject({
        code: -32000,
        message: expect.stringMatching(/^Authentication required: .*Incorrect API key provided/),
      });
      expect(editor.wire.entries.map(({ line }) => line).join("\n")).not.toContain(secret);
      expect(editor.stderr).not.toContain(secret);
      model.reply("The key was repaired.");
      await editor.prompt(sessionId, "Again");
      expect(agentText(editor.updates(sessionId))).toBe("The key was repaired.");
    });
  });
});

describe("a bad configuration", () => {
  const broken = '{\n  "permission": { "bash": "perhaps" },\n  "instructions": ["NOTES.md"]\n}\n';

  test("is reported with file, line and column at the first turn, and the rest works", async () => {
    const files = { "fairlead.json": broken, "NOTES.md": "Say please.\n" };
    await story({ files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.").reply("Again.");
      await editor.prompt(sessionId, "Hi");
      const notice = thoughtText(editor.updates(sessionId));
      expect(notice).toContain(`${join(repository.path, "fairlead.json")}:2:`);
      expect(agentText(editor.updates(sessionId))).toBe("Hello.");
      expect(model.requests[0]?.system).toContain("Say please.");
      await editor.prompt(sessionId, "Again");
      expect(thoughtText(editor.updates(sessionId))).toBe(notice);
    });
  });

  test("is reported at once to an editor that accepts notices", async () => {
    const client = { ...plain(), capabilities: { session: { notices: {} } } };
    await story({ files: { "fairlead.json": broken }, client }, async ({ editor, repository }) => {
      const { sessionId } = await editor.newSession();
      const { title } = await editor.waitForKind(sessionId, "notice");
      expect(title).toContain(`${join(repository.path, "fairlead.json")}:2:`);
    });
  });

  test.each([
    ["that is no JSON", { "fairlead.json": '{ "model": ' }],
    ["that is a list", { "fairlead.json": "[]" }],
    ["that is binary", { "fairlead.json": new Uint8Array([0, 255, 254, 0]) }],
    ["that is a folder", { "fairlead.json/inside": "" }],
    ["with an agent file that is broken", { ".fairlead/agent/bad.md": "---\nmode: [\n---\nText\n" }],
  ])("%s is named and stops nothing", async (_name, files) => {
    await story({ files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      const [file = ""] = Object.keys(files);
      const named = join(repository.path, file.replace("/inside", ""));
      expect(thoughtText(editor.updates(sessionId))).toContain(named);
      expect(agentText(editor.updates(sessionId))).toBe("Hello.");
    });
  });
});

describe("an unsupported version", () => {
  const oddVersions = ["1", null, 1.5, 99_999, -1, 1e300, {}, true, undefined];

  test.each(oddVersions.slice(0, 4))("%j is answered with the supported version", async (protocolVersion) => {
    await story({ initialize: false }, async ({ editor, model }) => {
      const requested = {
        protocolVersion,
        clientInfo: { name: "odd" },
        clientCapabilities: { session: { notices: {} } },
      };
      expect(await editor.request("initialize", requested)).toMatchObject({
        protocolVersion: 1,
        agentInfo: {},
      });
      await expectUsable(editor, model);
    });
  });

  test("answers with version 1 to each unknown version, also repeatedly", async () => {
    await story({ initialize: false }, async ({ editor, model }) => {
      for (const protocolVersion of oddVersions) {
        const answer = await editor.request("initialize", { protocolVersion, clientCapabilities: {} });
        expect(answer).toMatchObject({ protocolVersion: 1, agentInfo: { name: "fairlead" } });
      }
      await expectUsable(editor, model);
    });
  });
});

/** Folders of other systems, by editors that do not run where the program does. */
const foreignFolders: [string, object, string][] = opensWindowsPaths
  ? []
  : [
      ["a folder of Windows", { cwd: "C:\\Users\\me", mcpServers: [] }, "is a path of Windows"],
      [
        "a folder of WSL as Windows names it",
        { cwd: "\\\\wsl.localhost\\Ubuntu\\home\\me", mcpServers: [] },
        "Use an editor that names folders as that machine does",
      ],
    ];

describe("bad parameters", () => {
  test.each<[string, object, string]>([
    ["a relative cwd", { cwd: "src", mcpServers: [] }, 'absolute path, not "src"'],
    ["an empty cwd", { cwd: "", mcpServers: [] }, "absolute path"],
    ["a folder that is not there", { cwd: "/not/there", mcpServers: [] }, '"/not/there" does not exist'],
    ...foreignFolders,
    [
      "a path that is too long",
      { cwd: `/${"x".repeat(300)}`, mcpServers: [] },
      opensWindowsPaths ? "does not exist" : "cannot be opened: ",
    ],
    ["a file as a folder", { cwd: launcher, mcpServers: [] }, "is not a folder"],
    ["no cwd", { mcpServers: [] }, "Invalid params: cwd: "],
    ["a cwd that is no text", { cwd: { a: 1 }, mcpServers: [] }, "Invalid params: cwd: "],
    ["servers that are none", { cwd: "/", mcpServers: [1] }, "Invalid params: mcpServers.0: "],
    [
      "a relative additional folder",
      { cwd: "/", mcpServers: [], additionalDirectories: ["x"] },
      'additionalDirectories must be an absolute path, not "x"',
    ],
    ["a NUL in a path", { cwd: "/tmp/\0", mcpServers: [] }, "cwd"],
  ])("%s is rejected with -32602", async (_name, params, words) => {
    await story({}, async ({ editor, model, repository }) => {
      expect(await expectFailure(editor.request("session/new", { ...params }))).toMatchObject({
        code: -32602,
        message: expect.stringContaining(words),
      });
      expect(await editor.list({ cwd: repository.path })).toEqual({ sessions: [] });
      await expectUsable(editor, model);
    });
  });

  test.each(["no-such-session", newSessionId(), "", "../../../etc/passwd", "__proto__", "ses_\u0000"])(
    "the unknown session %j is rejected with -32002 and its id",
    async (sessionId) => {
      await story({}, async ({ editor, repository }) => {
        const refused = {
          code: -32002,
          message: `Session not found: ${sessionId.replace("\0", "")}`,
          data: { sessionId, details: "Session not found" },
        };
        const { path: cwd } = repository;
        expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toEqual(refused);
        expect(await expectFailure(editor.load(sessionId))).toEqual(refused);
        expect(await expectFailure(editor.request("session/resume", { sessionId, cwd }))).toEqual(refused);
        expect(await expectFailure(editor.setMode(sessionId, "plan"))).toEqual(refused);
        await editor.cancel(sessionId);
        expect(await collectUnrequestedMessages(editor)).toEqual([]);
      });
    },
  );

  const audio: ContentBlock = { type: "audio", mimeType: "audio/wav", data: "UklGRg==" };
  test.each<[string, unknown, string]>([
    ["audio", [{ type: "text", text: "Listen" }, audio], "Audio in prompts is not supported."],
    ["an unknown kind of content", [{ type: "hologram", data: "x" }], "Invalid params: prompt.0"],
    ["a text that is none", [{ type: "text", text: 5 }], "Invalid params: prompt.0.text: "],
    ["a prompt that is no list", "Hi", "Invalid params: prompt: "],
    ["an empty prompt", [], "empty"],
    ["a prompt of blanks", [{ type: "text", text: " \n" }], "empty"],
    ["a prompt that no model reads", [{ type: "text", text: "x".repeat(10_000_001) }], "into a file"],
  ])("%s is rejected with -32602, and the session continues", async (_name, prompt, words) => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      expect(await expectFailure(editor.request("session/prompt", { sessionId, prompt }))).toMatchObject({
        code: -32602,
        message: expect.stringContaining(words),
      });
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(agentText(editor.updates(sessionId))).toBe("Hello.");
    });
  });

  test("null counts as a missing optional field", async () => {
    await story({ initialize: false }, async ({ editor, repository }) => {
      await editor.request("initialize", {
        protocolVersion: 1,
        clientInfo: null,
        clientCapabilities: { fs: null, session: null, elicitation: null, _meta: null },
        _meta: null,
      });
      const params = { cwd: repository.path, mcpServers: [], _meta: null, unknownKey: [1] };
      expect(await editor.request("session/new", params)).toMatchObject({ sessionId: expect.any(String) });
      expect(await editor.request("session/list", { cwd: null, cursor: null })).toMatchObject({
        sessions: [{ cwd: repository.path }],
      });
    });
  });
});

describe("a minimal environment", () => {
  test("with an empty HOME everything works", async () => {
    await story({ env: { HOME: "", USERPROFILE: "" } }, async ({ editor, model }) => {
      await expectUsable(editor, model);
    });
  });

  test("without HOME everything works", async () => {
    const program = without('name === "HOME" || name === "USERPROFILE"');
    await story({ program }, async ({ editor, model }) => {
      await expectUsable(editor, model);
    });
  });

  test("with only PATH it starts and answers", async () => {
    await story({ program: without('name !== "PATH"'), initialize: false }, async ({ editor }) => {
      expect(await editor.initialize()).toMatchObject({ protocolVersion: 1 });
      expect(await expectFailure(editor.prompt("none", "Hi"))).toMatchObject({ code: -32002 });
      expect(await expectFailure(editor.newSession({ cwd: "relative" }))).toMatchObject({ code: -32602 });
    });
  });

  test("with an empty home folder it needs no configuration to open a session", async () => {
    await story({ initialize: false }, async ({ editor, home }) => {
      await rm(join(home.path, ".config"), { recursive: true });
      await editor.initialize();
      expect((await editor.newSession()).sessionId).toMatch(/./);
    });
  });
});

describe("a data folder that cannot be written", () => {
  test("is named in the error, and the next request works once it is writable", async () => {
    const blocked = ".local/share/fairlead";
    await story({ homeFiles: { [blocked]: "a file\n" } }, async ({ editor, model, home }) => {
      const path = join(home.path, blocked);
      for (const request of [editor.newSession(), editor.list(), editor.newSession()]) {
        expect(await expectFailure(request)).toMatchObject({
          code: -32603,
          message: expect.stringContaining(path),
        });
      }
      expect(await expectFailure(editor.load(newSessionId()))).toMatchObject({ code: -32603 });
      await rm(path);
      await expectUsable(editor, model);
    });
  });

  test("for logs or the cache stops nothing", async () => {
    const homeFiles = { ".local/state": "a file\n", ".cache": "a file\n" };
    await story({ homeFiles, env: { FAIRLEAD_LOG: "debug" } }, async ({ editor, model }) => {
      await expectUsable(editor, model);
    });
  });
});

test("a client that closes stderr loses only the log", async () => {
  await story({ initialize: false, program: [launcher, "acp", "--verbose"] }, async ({ editor, model }) => {
    editor.closeErrors();
    await editor.initialize();
    await expectUsable(editor, model);
    await expectUsable(editor, model);
  });
});
