import { appendFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { faulty } from "../../support/mcp/mcp.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { expectSamePrefixes } from "../../support/model/same-prefixes.ts";
import { withMovingClock } from "../../support/program/moving-clock-program.ts";
import { story, type StoryContext } from "../../support/editor/story.ts";

const minuteMs = 60_000;
const files = { "AGENTS.md": "Speak in rhymes.\n" };

/** Returns the newest message of a request, without the system prompt. */
const newestOf = (request: ModelRequest | undefined): string => JSON.stringify(request?.messages.at(-1));

/** Returns the system prompts, which are expected to be the same. */
function expectOneSystem({ model }: StoryContext): string {
  const [first = ""] = model.requests.map(({ system }) => system);
  for (const { system } of model.requests) expect(system).toBe(first);
  return first;
}

/** Milliseconds until the next local midnight. */
function msToMidnight(): number {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1).getTime() - now.getTime();
}

async function restart({ editor }: StoryContext, sessionId: string): Promise<void> {
  await editor.restart();
  await editor.initialize();
  await editor.load(sessionId);
}

describe("the system prompt of a session is unchanged and a reminder reports changes", () => {
  test("when an instruction file is edited, deleted and written again", async () => {
    await story({ files }, async (context) => {
      const { editor, model, repository } = context;
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "First");
      await repository.write({ "AGENTS.md": "Speak in riddles.\n" });
      await editor.prompt(sessionId, "Second");
      await editor.prompt(sessionId, "Third");
      await rm(join(repository.path, "AGENTS.md"));
      await editor.prompt(sessionId, "Fourth");
      await repository.write({ "AGENTS.md": "Speak in rhymes.\n" });
      await editor.prompt(sessionId, "Fifth");
      expect(expectOneSystem(context)).toContain("Speak in rhymes.");
      const [, second, third, fourth, fifth] = model.requests.map(newestOf);
      expect(second).toMatch(
        /The instructions changed in .*AGENTS\.md\. They are now:\\n\\nSpeak in riddles\./,
      );
      expect(third).not.toContain("system-reminder");
      expect(fourth).toMatch(/The instructions from .*AGENTS\.md no longer apply\./);
      expect(fifth).toMatch(
        /There are new instructions in .*AGENTS\.md\. They are now:\\n\\nSpeak in rhymes\./,
      );
      expect(JSON.stringify(editor.updates(sessionId))).not.toContain("riddles");
    });
  });

  test("without the text of a large file, which the model must read", async () => {
    await story({ files }, async (context) => {
      const { editor, model, repository } = context;
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "First");
      await repository.write({ "AGENTS.md": "Speak in riddles.\n".repeat(400) });
      await editor.prompt(sessionId, "Second");
      expectOneSystem(context);
      expect(newestOf(model.requests[1])).toMatch(/changed in .*AGENTS\.md\. Read it before you go on\./);
      expect(newestOf(model.requests[1])).not.toContain("riddles");
    });
  });

  test("when skills are added, changed and removed", async () => {
    await story({}, async (context) => {
      const { editor, model, home } = context;
      model.otherwise("Yes.");
      const skill = (description: string) => ({
        ".claude/skills/rhyme/SKILL.md": `---\ndescription: ${description}\n---\nText.`,
      });
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "First");
      await home.write(skill("How to rhyme."));
      await editor.prompt(sessionId, "Second");
      await home.write(skill("How to rhyme well."));
      await editor.prompt(sessionId, "Third");
      await rm(join(home.path, ".claude/skills/rhyme"), { recursive: true });
      await editor.prompt(sessionId, "Fourth");
      expect(expectOneSystem(context)).not.toContain("rhyme");
      const [, second, third, fourth] = model.requests.map(newestOf);
      expect(second).toContain("Skills that are new or changed:\\n- rhyme: How to rhyme.");
      expect(third).toContain("Skills that are new or changed:\\n- rhyme: How to rhyme well.");
      expect(fourth).toContain("Skills that are no longer available: rhyme");
    });
  });

  test("after a restart, also when an MCP server has other instructions then", async () => {
    const config = { mcp: { own: faulty("none", "server") } };
    await story({ config, files: { ...files, server: "says Be exact.\n" } }, async (context) => {
      const { editor, model, repository } = context;
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "First");
      await appendFile(join(repository.path, "server"), "says Be vague.\n");
      await repository.write({ "AGENTS.md": "Speak in riddles.\n" });
      await restart(context, sessionId);
      await editor.prompt(sessionId, "Second");
      const system = expectOneSystem(context);
      expect(system).toContain("Be exact.");
      expect(newestOf(model.requests[1])).toContain("Speak in riddles.");
      expect(newestOf(model.requests[1])).toMatch(
        /not from the user.*The MCP server own now says:\\n\\nBe vague\./,
      );
    });
  });

  test("after midnight, when a reminder gives the new date", async () => {
    const minutes = (count: number) => String(msToMidnight() + count * minuteMs);
    const homeFiles = { clock: minutes(-3) };
    await story({ program: withMovingClock, homeFiles }, async (context) => {
      const { editor, model, home } = context;
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "First");
      await writeFile(join(home.path, "clock"), minutes(3));
      await editor.prompt(sessionId, "Second");
      await editor.prompt(sessionId, "Third");
      expectOneSystem(context);
      expectSamePrefixes(model.requests);
      const dates = model.requests.map((request) => /The date is now \w{3} \w{3}/.test(newestOf(request)));
      expect(dates).toEqual([false, true, false]);
    });
  });

  test("again after the message with the reminder was undone", async () => {
    await story({ files }, async (context) => {
      const { editor, model, repository } = context;
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "First");
      await repository.write({ "AGENTS.md": "Speak in riddles.\n" });
      await editor.prompt(sessionId, "Second");
      await editor.prompt(sessionId, "/undo");
      await editor.prompt(sessionId, "Third");
      expectOneSystem(context);
      expect(newestOf(model.requests[2])).toContain("Speak in riddles.");
    });
  });

  test("in a continued task", async () => {
    await story({ files, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const task = { description: "Look", prompt: "Look.", subagent_type: "general" };
      model.reply(reply.call("task", task)).reply("Seen.").reply("Done.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "Delegate");
      const [, id] = /task_id: (\S+)/.exec(model.requests[2]?.toolResults[0] ?? "") ?? [];
      await repository.write({ "AGENTS.md": "Speak in riddles.\n" });
      model
        .reply(reply.call("task", { ...task, task_id: id }))
        .reply("Seen.")
        .reply("Done.");
      await editor.prompt(sessionId, "Again");
      const [, first, , , second] = model.requests;
      expect(second?.system).toBe(first?.system);
      expect(newestOf(second)).toContain("Speak in riddles.");
    });
  });
});

describe("the system prompt is rebuilt", () => {
  test("after a compaction, without a reminder", async () => {
    await story({ files }, async ({ editor, model, repository }) => {
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "First");
      await repository.write({ "AGENTS.md": "Speak in riddles.\n" });
      await editor.prompt(sessionId, "/compact");
      await editor.prompt(sessionId, "Second");
      const [first, summary, second] = model.requests;
      expect(summary?.system).toBe(first?.system);
      expect(second?.system).toContain("Speak in riddles.");
      expect(newestOf(second)).not.toContain("riddles");
    });
  });

  test("when the cache has expired, and corrects an outdated reminder", async () => {
    const options = { files, program: withMovingClock, homeFiles: { clock: "0" } };
    await story(options, async ({ editor, model, repository, home }) => {
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "First");
      await repository.write({ "AGENTS.md": "Speak in riddles.\n" });
      await editor.prompt(sessionId, "Second");
      await repository.write({ "AGENTS.md": "Speak in prose.\n" });
      await writeFile(join(home.path, "clock"), String(60 * minuteMs));
      await editor.prompt(sessionId, "Third");
      await editor.prompt(sessionId, "Fourth");
      const [first, second, third, fourth] = model.requests;
      expect(second?.system).toBe(first?.system);
      expect(third?.system).toContain("Speak in prose.");
      expect(fourth?.system).toBe(third?.system);
      expect(newestOf(third)).toContain("Speak in prose.");
      expect(newestOf(fourth)).not.toContain("system-reminder");
    });
  });
});
