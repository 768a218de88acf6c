import { expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();

test("project approvals are listed and revoked from the shell", async () => {
  const config = { permission: { bash: "ask" } };
  await story({ config, permission: "allow_always" }, async ({ editor, model, repository, home }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "git tag one" })).reply("Tagged.");
    await editor.prompt(sessionId, "Tag it");
    await editor.prompt(sessionId, "/permissions keep 1");
    const run = (...args: string[]) => fairlead(home.path, args, { cwd: repository.path });
    expect((await run("permissions")).stdout).toBe("1\tbash\tgit tag *");
    expect(JSON.parse((await run("permissions", "list", "--json")).stdout)).toEqual([
      { permission: "bash", pattern: "git tag *" },
    ]);
    expect((await run("permissions", "revoke", "2")).exitCode).toBe(2);
    expect((await run("permissions", "revoke", "1")).stdout).toBe("Revoked: bash git tag *");
    expect((await run("permissions", "list")).stdout).toBe(
      "There are no permanent approvals in this project.",
    );
  });
});

test("programs get JSON where terminals get tables", async () => {
  await story({ config: { theme: "dark" } }, async ({ repository, home }) => {
    const run = (...args: string[]) => fairlead(home.path, args, { cwd: repository.path });
    const json = async (...args: string[]): Promise<unknown> =>
      JSON.parse((await run(...args, "--json")).stdout);
    expect(await json("doctor")).toEqual(
      expect.arrayContaining([
        { what: "Model", found: expect.stringContaining("test/scripted") },
        { what: "Note", found: expect.stringContaining('"theme" is not supported') },
      ]),
    );
    expect(await json("models")).toEqual([
      expect.objectContaining({ id: "test/scripted", limit: { context: 100_000, output: 8_000 } }),
    ]);
    expect((await run("models")).stdout).toMatch(/^test\/scripted\tScripted\t100k\t8k\t/);
    const none = await run("models", "nobody");
    expect([none.exitCode, none.stderr]).toEqual([1, expect.stringContaining("providers with models: test")]);
    expect(await json("trust")).toEqual([]);
  });
});
