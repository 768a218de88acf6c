import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fairlead } from "../support/program/cli.ts";
import * as reply from "../support/model/reply.ts";
import { type StoryContext, story } from "../support/editor/story.ts";
import { agentText, thoughtText } from "../support/transcript.ts";
import { type Damage, damages } from "./support/damage.ts";

/** All damages to a session's own file, including its loss. */
const losses: Record<string, Damage> = {
  ...damages,
  "has lost its last two bytes": (path) => truncateSync(path, readFileSync(path).length - 2),
  "is missing": (path) => rmSync(path),
};

/** Damages that leave the file's content readable. */
const harmless = new Set(["comes from a later version", "has its keys twice"]);

/** Other files that are lost with the session's file. */
const sources = {
  "with its journal": () => {},
  "with the journal of an older version": (root: string, id: string) =>
    writeFileSync(join(root, "journal", `${id}.ndjson`), '{"type":"start","seq":100}\n'),
  "without its journal": (root: string, id: string) => rmSync(join(root, "journal", `${id}.ndjson`)),
};

const storage = (home: StoryContext["home"]) => join(home.path, ".local/share/fairlead/storage");

/** Removes the session's folder from answers, which earlier versions did not store. */
function forgetPaths(folder: string): void {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replaceAll(/,?"path":\{"cwd":"[^"]*","root":"[^"]*"\}/g, ""));
  }
}

function fileOf(root: string, id: string): string {
  for (const project of readdirSync(join(root, "session"))) {
    const path = join(root, "session", project, `${id}.json`);
    if (readdirSync(join(root, "session", project)).includes(`${id}.json`)) return path;
  }
  throw new Error(`${id} has no file`);
}

test.each(Object.entries(sources))(
  "a session whose own file is damaged (%s) is listed, loads and continues",
  async (source, lose) => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model, home, repository }) => {
      const root = storage(home);
      const other = await editor.newSession();
      model.otherwise(({ userText }) => (userText.includes("title for") ? "A title" : "Answered."));
      const ids: Record<string, string> = {};
      for (const name of Object.keys(losses)) {
        const { sessionId } = await editor.newSession();
        ids[name] = sessionId;
        model
          .reply(reply.call("read", { filePath: join(repository.path, "a.txt") }), reply.finish("tool_calls"))
          .reply("Read.");
        await editor.prompt(sessionId, `It ${name}`);
        await editor.closeSession(sessionId);
      }
      await editor.prompt(other.sessionId, "Another");
      await editor.closeSession(other.sessionId);
      const { sessions: before } = await editor.list();
      await editor.close();
      const otherFile = fileOf(root, other.sessionId);
      for (const [name, damage] of Object.entries(losses)) {
        const id = ids[name] ?? "";
        damage(fileOf(root, id), otherFile);
        lose(root, id);
      }
      rmSync(join(root, "session_list.json"), { force: true });

      const check = await fairlead(home.path, ["doctor", "--json"], { cwd: repository.path });
      expect(check.exitCode).toBe(1);
      for (const [name, id] of Object.entries(ids)) {
        const isRebuilt = check.stdout.includes(`${id} has lost its own file`);
        expect([name, isRebuilt]).toEqual([name, !harmless.has(name)]);
      }
      expect(check.stdout).toMatch(/damaged files were moved aside/);

      await editor.restart();
      await editor.initialize();
      const { sessions } = await editor.list();
      const cwdOf = (list: typeof sessions) =>
        new Map(list.map(({ sessionId, cwd, updatedAt }) => [sessionId, [cwd, updatedAt !== undefined]]));
      expect(cwdOf(sessions)).toEqual(cwdOf(before));
      const titles = new Map(sessions.map(({ sessionId, title }) => [sessionId, title]));
      for (const [name, id] of Object.entries(ids)) {
        const isKnown = source === "with its journal" || harmless.has(name);
        if (!isKnown) expect(titles.get(id)).toBe(`It ${name}`);
        else expect(titles.get(id)).toBe(before.find(({ sessionId }) => sessionId === id)?.title);
        const start = editor.updates(id).length;
        await editor.load(id);
        const shown = editor.updates(id).slice(start);
        expect([name, agentText(shown)]).toEqual([name, "Read."]);
        const isTold = thoughtText(shown).includes(
          "The file of this session was damaged or missing. It was rebuilt",
        );
        expect([name, isTold]).toEqual([name, !harmless.has(name)]);
        expect((await editor.prompt(id, "Go on")).stopReason).toBe("end_turn");
        await editor.closeSession(id);
      }
      const again = await fairlead(home.path, ["doctor"], { cwd: repository.path });
      expect(again.stdout).not.toContain("has lost its own file");
      expect(again.stdout).toMatch(/damaged files were moved aside/);
      expect(readFileSync(join(home.path, ".local/state/fairlead/fairlead.log"), "utf8")).toContain(
        "session without its own file rebuilt",
      );
    });
  },
);

test("a damaged session diff is rebuilt from the messages", async () => {
  const options = { files: { "a.txt": "one\n" }, config: { permission: "allow" } };
  await story(options, async ({ editor, model, home, repository }) => {
    const path = join(repository.path, "a.txt");
    const { sessionId } = await editor.newSession();
    const change = (from: string, to: string) =>
      model
        .reply(
          reply.call("edit", { filePath: path, oldString: from, newString: to }),
          reply.finish("tool_calls"),
        )
        .reply("Done.");
    model.reply(reply.call("read", { filePath: path }), reply.finish("tool_calls")).reply("Read.");
    await editor.prompt(sessionId, "Read it");
    change("one", "two");
    await editor.prompt(sessionId, "Change it");
    change("two", "three");
    await editor.prompt(sessionId, "Change it again");
    await editor.closeSession(sessionId);
    const file = join(storage(home), "session_diff", `${sessionId}.json`);
    const before = readFileSync(file, "utf8");
    expect(before).toContain(JSON.stringify(path));
    for (const damage of Object.values(damages)) {
      damage(file, file);
      await editor.load(sessionId);
      await editor.closeSession(sessionId);
      expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject(JSON.parse(before));
    }
  });
});

test("a session with only messages left opens in the folder that the client names", async () => {
  await story({}, async ({ editor, model, home, repository }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Answered.");
    await editor.prompt(sessionId, "A question");
    await editor.close();
    const root = storage(home);
    forgetPaths(join(root, "message", sessionId));
    rmSync(join(root, "session"), { recursive: true });
    rmSync(join(root, "journal"), { recursive: true });
    rmSync(join(root, "session_list.json"), { force: true });
    const { stdout } = await fairlead(home.path, ["doctor"], { cwd: repository.path });
    expect(stdout).toContain(
      `${sessionId} has lost its own file, and nothing says in which folder it worked`,
    );
    expect(stdout).toContain(`Open it in that folder: fairlead run --session ${sessionId}`);
    await editor.restart();
    await editor.initialize();
    expect((await editor.list()).sessions).toEqual([]);
    const start = editor.updates(sessionId).length;
    await editor.load(sessionId);
    expect(agentText(editor.updates(sessionId).slice(start))).toBe("Answered.");
    expect((await editor.list()).sessions).toMatchObject([
      { sessionId, cwd: repository.path, title: "A question" },
    ]);
  });
});
