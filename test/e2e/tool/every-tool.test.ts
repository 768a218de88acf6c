import { expect, test } from "vitest";
import {
  plain,
  withElicitation,
  withFs,
  zedLike,
  type ClientKind,
  type Elicit,
} from "../../support/editor/clients.ts";
import { expectGolden } from "../../support/wire/golden.ts";
import { type JsonObject, toObject } from "../../support/json.ts";
import { createPng } from "../../support/png.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";
import { body, webServer } from "../../tool/web/web-server.ts";

const story = storiesOfOneAgent();

const elicit: Elicit = () => ({ action: "accept", content: { question_1: "SQLite" } });

/** An editor with files and forms, and without terminals. */
function withFsAndForms(): ClientKind {
  const [fs, forms] = [withFs(), withElicitation(elicit)];
  return { ...fs, ...forms, capabilities: { ...fs.capabilities, ...forms.capabilities } };
}

const clients: [string, () => ClientKind][] = [
  ["plain", plain],
  ["zed", () => zedLike(new Map(), elicit)],
  ["fs-and-forms", withFsAndForms],
];

const files = {
  "src/a.ts": "export const one = 1;\nexport const two = 2;\n",
  "notes.md": "# Notes\n",
  "dot.png": createPng(2, 2),
  "tabs.txt": "one\ttab\n",
  ".fairlead/skills/greet/SKILL.md":
    "---\nname: greet\ndescription: How to greet people.\n---\nSay hello, then the name.\n",
};

const limit = { context: 100_000, output: 8_000 };
const config = {
  // A reminder is one more request than the story scripts.
  evidence: { reminder: false },
  permission: { edit: "ask", bash: "ask" },
  // This family is offered apply_patch.
  model: "test/gpt-5-scripted",
};

const database = {
  question: "Which database?",
  header: "Database",
  options: [
    { label: "SQLite", description: "One file" },
    { label: "Postgres", description: "A server" },
  ],
};

const patch = [
  "*** Begin Patch",
  "*** Add File: added.txt",
  "+new",
  "*** Update File: tabs.txt",
  "*** Move to: moved/tabs.txt",
  "@@",
  "-one\ttab",
  "+two\ttabs",
  "*** Delete File: notes.md",
  "*** End Patch",
].join("\n");

/** One call of each tool, in a useful order. */
const callsFor = (url: string): reply.Step[] => [
  reply.call("list", {}),
  reply.call("glob", { pattern: "**/*.ts" }),
  reply.call("grep", { pattern: "two = \\d", include: "*.ts" }),
  reply.call("read", { filePath: "src/a.ts" }),
  reply.call("read", { filePath: "dot.png" }),
  reply.call("edit", { filePath: "src/a.ts", oldString: "one = 1", newString: "one = 10" }),
  reply.call("multiedit", {
    filePath: "src/a.ts",
    edits: [
      { oldString: "one = 10", newString: "one = 11" },
      { oldString: "two = 2", newString: "two = 22" },
    ],
  }),
  reply.call("write", { filePath: "src/new.ts", content: "export {};\n" }),
  reply.call("bash", { command: "echo one; exit 3", description: "Print and fail" }),
  reply.call("todowrite", { todos: [{ content: "Look", status: "in_progress", priority: "high" }] }),
  reply.call("todoread", {}),
  reply.call("webfetch", { url: `${url}/page` }),
  reply.call("websearch", { query: "fairness" }),
  reply.call("codesearch", { query: "fair queue" }),
  reply.call("question", { questions: [database] }),
  reply.call("skill", { name: "greet" }),
  reply.call("plan_enter", {}),
  reply.call("plan_exit", {}),
];

const shownKinds = new Set(["tool_call", "tool_call_update", "plan", "current_mode_update"]);

/** Messages about cards, the plan, and requests to the user and the editor with their responses. */
function isOfCalls(message: JsonObject): boolean {
  const { method, params, result } = message;
  if (method === "session/update")
    return shownKinds.has(String(toObject(toObject(params).update).sessionUpdate));
  if (typeof method === "string") return /^(session\/request_permission|elicitation\/|fs\/)/.test(method);
  return "outcome" in toObject(result) || "action" in toObject(result);
}

async function play(
  { editor, model }: StoryContext,
  calls: readonly reply.Step[],
  name: string,
): Promise<string> {
  const { sessionId } = await editor.newSession();
  await editor.setConfigOption(sessionId, "model", name);
  for (const call of calls) model.reply(call);
  model.reply("Done.");
  await editor.prompt(sessionId, "Use what you have");
  return sessionId;
}

test.each(clients)("a client that is %s receives each tool as in the golden file", async (name, client) => {
  await using server = await webServer({
    "/page": body("<h1>Title</h1><p>Text</p>", { "content-type": "text/html" }),
    "/search": (_, response) =>
      void response.end(JSON.stringify([{ title: "Found", url: "https://example.org/" }])),
  });
  const models = { scripted: { limit, tool_call: true }, "gpt-5-scripted": { limit, tool_call: true } };
  await story({ client: client(), files, permission: "allow_once" }, async (storyContext) => {
    const { editor, model, repository, home } = storyContext;
    const provider = { test: { options: { baseURL: model.url, apiKey: "test-key" }, models } };
    const place = { url: `${server.url}/search?q={query}` };
    const search = { web: place, code: place };
    await home.write({ ".config/fairlead/fairlead.json": JSON.stringify({ ...config, provider, search }) });
    // A generated title arrives at any time, which would change the order on the wire.
    model.title(reply.gate()).title(reply.gate());
    const calls = callsFor(server.url);
    const sessionId = await play(storyContext, calls, "test/scripted");
    const patched = await play(
      storyContext,
      [
        reply.call("read", { filePath: "notes.md" }),
        reply.call("read", { filePath: "tabs.txt" }),
        reply.call("apply_patch", { patchText: patch }),
      ],
      "test/gpt-5-scripted",
    );
    const shown = [sessionId, patched].flatMap((id) => toolCalls(editor.updates(id)));
    // The list of steps has no card.
    expect(shown).toHaveLength(calls.length - 2 + 3);
    const failed = shown.filter(({ status }) => status !== "completed");
    expect(
      failed.map(({ name }) => name),
      "a command with an exit code",
    ).toEqual(["bash"]);
    await expectGolden(`tools.${name}`, editor.wire, {
      cwd: repository.path,
      home: home.path,
      names: { [server.url]: "<server>" },
      counts: isOfCalls,
    });
  });
});
