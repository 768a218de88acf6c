import { expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { expectFailure } from "../../support/failure.ts";
import { isObject, type JsonObject } from "../../support/json.ts";
import { faulty } from "../../support/mcp/mcp.ts";
import * as reply from "../../support/model/reply.ts";
import { story } from "../../support/editor/story.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

/**
 * Control sequences for terminals and characters that change the writing direction; the plain text is "plain
 * words".
 */
const painted = "\u001b]0;owned\u0007\u001b[31mplain\u001b[0m \u009b2J\u0007\u202ewords\u2069\r";
const sign = /[^\P{Cc}\t\n]|[\u{202a}-\u{202e}\u{2066}-\u{2069}]/u;

/** Wire fields whose texts come from the program itself. */
const replyText = new Set(["message", "details", "title", "name", "description", "hint"]);

/** Returns the texts in such fields that contain a control character. */
function paintedFields(value: unknown, field?: string): string[] {
  if (typeof value === "string")
    return field !== undefined && replyText.has(field) && sign.test(value) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((one) => paintedFields(one));
  if (!isObject(value)) return [];
  const { rawInput: _, ...fields }: JsonObject = value;
  return Object.entries(fields).flatMap(([key, one]) => paintedFields(one, key));
}

test("text of providers, servers, models and configurations reaches the editor escaped", async () => {
  const config = {
    agent: { painter: { description: painted, mode: "primary" } },
    command: { paint: { description: painted, template: "Paint." } },
    mcp: { bad: faulty("painted-start"), rude: faulty("painted") },
    permission: { "rude_*": "ask" },
    retry: { delay_ms: 20, attempts: 2 },
  };
  await story({ config, permission: "allow_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.title(painted);
    model
      .reply(reply.failure(500, painted))
      .reply(reply.call("rude_fail", { text: painted }))
      .reply("Fine.");
    await editor.prompt(sessionId, "Go");
    const call = toolCalls(editor.updates(sessionId)).find(({ name }) => name !== undefined);
    expect(call?.content).toEqual([
      { type: "content", content: { type: "text", text: expect.stringContaining("did not work") } },
    ]);
    model.reply(
      reply.call("todowrite", { todos: [{ content: painted, status: "pending", priority: "low" }] }),
    );
    model.reply(reply.failure(400, painted));
    const refused = await expectFailure(editor.prompt(sessionId, "Again"));
    expect(refused.message).toBe("The provider refused the request (400): plain words");
    const lost = await expectFailure(editor.load(painted));
    expect(lost.message).toBe("Session not found: plain words");
    await editor.prompt(sessionId, "/mcp");

    const updates = editor.updates(sessionId);
    const texts = [agentText(updates), thoughtText(updates), JSON.stringify(call?.content)];
    expect(texts.filter((text) => sign.test(text))).toEqual([]);
    expect(texts[0]).toContain("Not today");
    expect(JSON.stringify(toolCalls(updates))).toContain("plain words\\nTrying again");
    const sent = editor.wire.entries.filter(({ direction }) => direction === "fromAgent");
    expect(sent.flatMap(({ line }) => paintedFields(JSON.parse(line)))).toEqual([]);
    expect((await editor.list()).sessions.map(({ title }) => title)).toEqual(["plain words"]);
  });
});

test("the command line shows no control characters in a terminal", async () => {
  await story({}, async ({ model, home }) => {
    model.reply(reply.failure(400, painted));
    const run = await fairlead(home.path, ["run", "Hi"]);
    expect(run.stderr).toContain("The provider refused the request (400): plain words");
    expect(run.stderr).not.toMatch(sign);
    await home.write({
      ".config/fairlead/fairlead.json": JSON.stringify({
        provider: { [painted]: { options: { baseURL: "x" } } },
      }),
    });
    const listed = await fairlead(home.path, ["models"]);
    expect(listed.stderr).not.toBe("");
    expect(`${listed.stdout}${listed.stderr}`).not.toMatch(sign);
  });
});
