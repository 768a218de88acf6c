import { join } from "node:path";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import { fairlead } from "../support/cli.ts";
import { startModelServer } from "../support/model-server.ts";
import * as reply from "../support/reply.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../support/temp.ts";

/** One session with one turn: a call that was asked for, and an answer. */
async function place() {
  const home = await temporaryFolder({}, "fairlead-home-");
  const repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  await writeConfig(home.path, model.url, { permission: { bash: "ask" } });
  const prices = { provider: { test: { models: { scripted: { cost: { input: 100, output: 100 } } } } } };
  const env = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify(prices) };
  const run = (args: string[], more: { cwd?: string } = {}) =>
    fairlead(home.path, args, { cwd: repository.path, env, ...more });
  model
    .reply(
      reply.say("Looking."),
      reply.call("bash", { command: "echo '```' && cat a.txt" }),
      reply.usage({ promptTokens: 10_000, completionTokens: 0 }),
    )
    .reply(reply.say("It says one."));
  const first = await run(["run", "--permission", "allow", "What does\na.txt say?"]);
  const id = /session (ses_\w+)/.exec(first.stderr)?.[1] ?? "";
  return {
    id,
    run,
    home: home.path,
    cwd: repository.path,
    [Symbol.asyncDispose]: async () => {
      await model.close();
      await home.remove();
      await repository.remove();
    },
  };
}

const spanSchema = z.object({ kind: z.string(), startMs: z.number(), lengthMs: z.number() });
const traceSchema = z.object({
  turns: z.array(z.object({ lengthMs: z.number(), spans: z.array(spanSchema) })),
});

const json = (text: string): unknown => JSON.parse(text);

test("sessions can be listed, shown, exported, imported, counted and deleted", async () => {
  await using at = await place();
  const { id, run, cwd } = at;

  expect((await run(["sessions"])).stdout.split("\t")).toEqual([
    id,
    expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d$/),
    expect.stringMatching(/^\$1\./),
    expect.any(String),
  ]);
  const elsewhere = await run(["sessions", "list"], { cwd: at.home });
  expect([elsewhere.stdout, elsewhere.stderr]).toEqual(["", expect.stringContaining("--all")]);
  expect(json((await run(["sessions", "--all", "--json"], { cwd: at.home })).stdout)).toMatchObject([
    { id, cwd },
  ]);

  const shown = await run(["sessions", "show", id.slice(-8)]);
  expect(shown.stdout).toContain(`session\t${id}`);
  expect(shown.stdout).toMatch(/^1\t[^\t]+\tWhat does a.txt say\?$/m);

  const markdown = (await run(["sessions", "export", "last"])).stdout;
  expect(markdown).toContain("## You\n\nWhat does\na.txt say?\n\n## build (test/scripted)\n\nLooking.");
  expect(markdown).toContain("**bash** echo '```' && cat a.txt\n\n````\n```\none\n````");

  const file = join(at.home, "exported.json");
  expect((await run(["sessions", "export", id, "--format", "json", "-o", file])).exitCode).toBe(0);
  const again = await run(["sessions", "export", id, "--format", "json", "-o", file]);
  expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining("--force replaces it")]);

  const copy = (await run(["sessions", "import", file])).stdout;
  expect(copy).toMatch(/^ses_\w+$/);
  expect(copy).not.toBe(id);
  expect((await run(["sessions", "delete", id])).stdout).toContain(`Deleted: ${id}`);
  expect((await run(["sessions", "import", file])).stdout).toBe(id);
  const copied = (await run(["sessions", "export", copy])).stdout;
  expect(copied.replace(copy, id)).toBe(markdown);

  const exported = z.object({ info: z.object({ cost: z.number(), titleCall: z.unknown() }) });
  const { info } = exported.parse(json(await readFile(file, "utf8")));
  const calls = 2 * (info.titleCall === undefined ? 2 : 3);
  expect(json((await run(["sessions", "stats", "--json"])).stdout)).toMatchObject({
    by: "model",
    sessions: 2,
    rows: [{ name: "test/scripted", calls, tokens: { input: expect.any(Number) } }],
    total: { calls, cost: expect.closeTo(2 * info.cost) },
  });
  const byFolder = await run(["sessions", "stats", "--by", "folder", "--days", "1"]);
  expect(byFolder.stdout.split("\n").map((line) => line.split("\t")[0])).toEqual([cwd, "total"]);

  const wrong = await run(["sessions", "show", "nothing"]);
  expect([wrong.exitCode, wrong.stderr]).toEqual([1, expect.stringContaining("There is no session nothing")]);
  const noFile = await run(["sessions", "import", join(cwd, "a.txt")]);
  expect([noFile.exitCode, noFile.stderr]).toEqual([2, expect.stringContaining("no exported session")]);
  expect(await readFile(file, "utf8")).toContain(id);
});

test("a trace shows what a turn did when: model calls, calls, and the wait for the person", async () => {
  await using at = await place();
  const { stdout } = await at.run(["trace", "last"]);
  const lines = stdout
    .split("\n")
    .map((line) => line.replaceAll(/[\d.]+ s/g, "N s").replaceAll(/\d+ ms/g, "N ms"));
  expect(lines.slice(2, -1).map((line) => line.trim().replaceAll(/ {2,}/g, "  "))).toEqual([
    expect.stringMatching(/^turn 1 .* build: What does a.txt say\?$/),
    "+N s  N s  model  test/scripted  first part after N ms, 10000 in, 0 out, $1.0000, tool-calls",
    "+N s  N s  wait  for you  allowed: bash echo '```' && cat a.txt",
    "+N s  N s  tool  bash echo '```' && cat a.txt  completed",
    expect.stringMatching(/^\+N s {2}N s {2}model {2}test\/scripted .*, stop$/),
  ]);
  const { turns } = traceSchema.parse(json((await at.run(["trace", at.id, "--json", "--turn", "1"])).stdout));
  const [turn] = turns;
  expect(
    turn?.spans.map(({ startMs, lengthMs }) => startMs >= 0 && startMs + lengthMs <= turn.lengthMs),
  ).toEqual([true, true, true, true]);
  expect((await at.run(["trace", "last", "--turn", "7"])).exitCode).toBe(2);
});
