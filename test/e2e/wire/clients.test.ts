import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { plain, withElicitation, withFs, zedLike, type ClientKind } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { expectGolden } from "../../support/wire/golden.ts";
import { toObject, toText } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Bytes that a command of the tests prints, and the maximum bytes on the wire for them. */
const outputBytes = 37_000;
const wireBytes = 150_000;

const config = { permission: { edit: "ask", bash: "ask" } };
const files = {
  "sum.js": "export const sum = (a, b) => a - b;\n",
  "test.js": 'import { sum } from "./sum.js";\nconsole.log(sum(1, 2) === 3 ? "passed" : "failed");\n',
  "package.json": '{ "type": "module" }\n',
};

/** An editor with files and forms, and without terminals. */
function withFsAndForms(): ClientKind {
  const [fs, forms] = [withFs(), withElicitation()];
  return { ...fs, ...forms, capabilities: { ...fs.capabilities, ...forms.capabilities } };
}

const clients: [string, () => ClientKind][] = [
  ["plain", plain],
  ["zed", zedLike],
  ["fs-and-forms", withFsAndForms],
];

/** Requests of the agent, by method. */
const requestsOf = (editor: Editor): string[] =>
  editor.wire.entries.flatMap(({ direction, message }) =>
    direction === "fromAgent" && message?.kind === "request" ? [message.method] : [],
  );

const bytesFromAgent = (editor: Editor): number =>
  editor.wire.entries
    .filter(({ direction }) => direction === "fromAgent")
    .reduce((sum, { line }) => sum + Buffer.byteLength(line) + 1, 0);

/** The model repairs sum.js, which the user allows, and runs the test, which the user allows too. */
async function playRepair({ editor, model }: StoryContext): Promise<string> {
  // A generated title arrives at any time, which would change the order on the wire.
  model.title(reply.gate());
  const { sessionId } = await editor.newSession();
  model
    .reply(reply.think("A look first."), reply.call("read", { filePath: "sum.js" }))
    .reply(
      reply.say("It subtracts."),
      reply.call("edit", { filePath: "sum.js", oldString: "a - b", newString: "a + b" }),
    )
    .reply(reply.call("bash", { command: "node test.js", description: "Run the test" }))
    .reply(reply.say("Repaired; the test passes."));
  await editor.prompt(sessionId, "Repair sum and run the test");
  return sessionId;
}

describe.each(clients)("the client %s", (name, client) => {
  test("gets the handshake of the golden file", async () => {
    await story({ client: client() }, async ({ editor, model, repository, home }) => {
      model.title(reply.gate()).reply(reply.say("Hello ", "there."));
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "Hi");
      await expectGolden(`hello.${name}`, editor.wire, { cwd: repository.path, home: home.path });
    });
  });

  test("sees a file read, edited with approval and tested as in the golden file", async () => {
    await story({ client: client(), files, config, permission: "allow_once" }, async (storyContext) => {
      const { editor, model, repository, home } = storyContext;
      const sessionId = await playRepair(storyContext);
      expect(await readFile(join(repository.path, "sum.js"), "utf8")).toContain("a + b");
      expect(model.requests[3]?.toolResults).toEqual([expect.stringContaining("passed")]);
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "completed",
        "completed",
        "completed",
      ]);
      await expectGolden(`repair.${name}`, editor.wire, { cwd: repository.path, home: home.path });
    });
  });

  test("gets 37 kB of streamed output without floods", async () => {
    const lines = Array.from({ length: 400 }, (_, at) => `${at} `.padEnd(outputBytes / 400, "x"));
    const command =
      'while read -r line; do echo "$line"; case $line in *0\\ *) sleep 0.02;; esac; done < long.txt';
    const files = { "long.txt": `${lines.join("\n")}\n` };
    // A window that does not truncate the result.
    const limit = { context: 400_000, output: 8_000 };
    await story({ client: client(), files, limit }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command })).reply("Done.");
      await editor.prompt(sessionId, "Print");
      expect(bytesFromAgent(editor)).toBeLessThan(wireBytes);
      expect(shownOutput(editor, sessionId).split("\n")).toEqual(expect.arrayContaining(lines));
    });
  });
});

describe("a client without capabilities", () => {
  test("is asked for permissions only", async () => {
    await story({ client: plain(), files, config, permission: "allow_once" }, async (storyContext) => {
      await playRepair(storyContext);
      expect(requestsOf(storyContext.editor)).toEqual([
        "session/request_permission",
        "session/request_permission",
      ]);
      const lines = storyContext.editor.wire.entries.map(({ line }) => line).join("\n");
      expect(lines).not.toContain("terminal_");
      expect(lines).not.toContain('"type":"terminal"');
    });
  });
});

describe("a client that runs commands in its terminals", () => {
  test("sees a command in a terminal: opened with the call, filled, ended with exit code", async () => {
    await story({ client: zedLike() }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo one; echo two >&2; exit 3" })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      const metas = editor
        .updates(sessionId)
        .filter(({ sessionUpdate }) => sessionUpdate.startsWith("tool_call"))
        .map(({ _meta }) => toObject(_meta));
      const [call] = toolCalls(editor.updates(sessionId));
      const terminal = call?.toolCallId;
      expect(call?.content).toEqual([{ type: "terminal", terminalId: terminal }]);
      expect(metas[0]?.terminal_info).toEqual({ terminal_id: terminal, cwd: repository.path });
      expect(shownOutput(editor, sessionId)).toBe("one\ntwo\n");
      expect(metas.at(-1)?.terminal_exit).toEqual({ terminal_id: terminal, exit_code: 3, signal: null });
      expect(requestsOf(editor)).toEqual([]);
    });
  });
});

/** The output that the user sees: in a terminal, or else as the call's text. */
function shownOutput(editor: Editor, sessionId: string): string {
  const updates = editor.updates(sessionId);
  const pieces = updates.map(({ _meta }) => toText(toObject(toObject(_meta).terminal_output).data) ?? "");
  if (pieces.some((piece) => piece !== "")) return pieces.join("").replaceAll("\r\n", "\n");
  const content = toolCalls(updates).flatMap((call) => call.content ?? []);
  return content
    .map((item) => (item.type === "content" && item.content.type === "text" ? item.content.text : ""))
    .join("\n");
}
