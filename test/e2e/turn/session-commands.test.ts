import { describe, expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText } from "../../support/transcript.ts";
import { memory } from "../../support/mcp/mcp.ts";

const story = storiesOfOneAgent();

describe("commands about the session", () => {
  test("/help lists the commands with their hints", async () => {
    await story({ files: { ".fairlead/commands/tidy.md": "Tidy up.\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/help");
      const text = agentText(editor.updates(sessionId));
      expect(text).toMatch(/`\/undo \[number of turns, or a checkpoint\]`: Undo the last turn/);
      expect(text).toContain("`/help`");
      expect(text).toContain("`/tidy`");
      expect(model.requests).toEqual([]);
    });
  });

  test("/model shows and changes the model and its effort", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/model");
      await editor.prompt(sessionId, "/model scripted");
      await editor.prompt(sessionId, "/model nowhere/none");
      const text = agentText(editor.updates(sessionId));
      expect(text).toMatch(/The model is \*\*test\/scripted\*\*[^]*The model is now \*\*test\/scripted\*\*/);
      expect(text).toMatch(/nowhere\/none/);
      expect(model.requests).toEqual([]);
    });
  });

  test("/agents shows and changes the agent", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/agents");
      await editor.prompt(sessionId, "/agents plann");
      await editor.prompt(sessionId, "/agents plan");
      const text = agentText(editor.updates(sessionId));
      expect(text).toMatch(/\*\*build\*\* \(in use\)/);
      expect(text).toMatch(/`@explore`/);
      expect(text).toContain('Agent "plann" not found. Did you mean plan?');
      expect(text).toContain("The agent is now plan.");
      expect(editor.updates(sessionId)).toContainEqual(
        expect.objectContaining({ sessionUpdate: "current_mode_update", currentModeId: "plan" }),
      );
      expect(model.requests).toEqual([]);
    });
  });

  test("answers an unknown command with the nearest one instead of the model", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/contxt");
      await editor.prompt(sessionId, "/nosuchcommand at all");
      const text = agentText(editor.updates(sessionId));
      expect(text).toContain("There is no command `/contxt`. Did you mean `/context`?");
      expect(text).toContain("There is no command `/nosuchcommand`. `/help` lists the commands.");
      expect(model.requests).toEqual([]);
    });
  });

  test("text that begins with a path goes to the model unchanged", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const texts = [
        "/etc/hosts is a file",
        "/tmp is full",
        "/ is the root",
        "/// says the comment",
        "/2 is half",
      ];
      for (const text of texts) {
        model.reply("Yes.");
        await editor.prompt(sessionId, text);
      }
      expect(model.requests.map(({ userText }) => userText)).toEqual(texts);
    });
  });
});

describe("/context", () => {
  test("shows what fills the window by instructions, tools and conversation", async () => {
    const files = { "AGENTS.md": "Use tabs.\n".repeat(200), "a.txt": "some words\n".repeat(500) };
    const config = { mcp: { notes: memory() } };
    await story({ files, config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply("Read.", reply.usage({ promptTokens: 12_345, completionTokens: 6 }));
      await editor.prompt(sessionId, "Read a.txt");
      await editor.prompt(sessionId, "/context");
      const text = agentText(editor.updates(sessionId));
      const rows = new Map(
        [...text.matchAll(/^\| (.+?) +\| +([\d,]+) \| +([\d.]+) % \|$/gm)].map(
          ([, name = "", tokens = ""]) => [name, Number(tokens.replaceAll(",", ""))],
        ),
      );
      expect([...rows.keys()]).toEqual([
        "System prompt",
        "Skills (3)",
        "Instructions: AGENTS.md",
        "Built-in tools (16)",
        "Tools of MCP resources (2)",
        expect.stringMatching(/^Tools of the MCP server notes \(\d+\)$/),
        "Your messages (1)",
        "Answers (1)",
        "Calls (1)",
        "Results of read (1)",
        "Sum",
      ]);
      expect(rows.get("Instructions: AGENTS.md")).toBeGreaterThan(500);
      expect(rows.get("Results of read (1)")).toBeGreaterThan(1_000);
      expect(text).toContain("The provider counted 12,351 tokens");
      expect(text).toMatch(/of 100,000 tokens/);
      const sum = [...rows].filter(([name]) => name !== "Sum").reduce((all, [, tokens]) => all + tokens, 0);
      expect(rows.get("Sum")).toBe(sum);
    });
  });

  test("measures the sent system prompt, and the reminder about later changes", async () => {
    const files = { "AGENTS.md": "Use tabs.\n".repeat(200) };
    await story(
      { files, limit: { context: 200_000, output: 8_000 } },
      async ({ editor, model, repository }) => {
        const { sessionId } = await editor.newSession();
        const measure = async () => {
          const before = agentText(editor.updates(sessionId)).length;
          await editor.prompt(sessionId, "/context");
          const text = agentText(editor.updates(sessionId)).slice(before);
          const row = (name: string) => new RegExp(`\\| ${name} +\\| +([\\d,]+) \\|`).exec(text)?.[1];
          const about = /has about ([\d,]+) of/.exec(text)?.[1];
          const [file, reminder, sum] = [
            row("Instructions: AGENTS.md"),
            row("Reminder of changes.*?"),
            about,
          ];
          return [file, reminder, sum].map((tokens) => Number(tokens?.replaceAll(",", "") ?? 0));
        };
        model.otherwise("Yes.");
        await editor.prompt(sessionId, "Hi");
        const [file = 0, none] = await measure();
        expect([file > 400, none]).toEqual([true, 0]);
        await repository.write({ "AGENTS.md": "Use spaces.\n" });
        const [frozen, reminder = 0, announced = 0] = await measure();
        expect(frozen).toBe(file);
        expect(reminder).toBeGreaterThan(10);
        await editor.prompt(sessionId, "Again");
        const [still, given, sum = 0] = await measure();
        expect([still, given]).toEqual([file, 0]);
        expect(model.requests.at(-1)?.system).toContain("Use tabs.");
        // The message and its answer are short.
        expect(sum - announced).toBeLessThan(20);
      },
    );
  });
});
