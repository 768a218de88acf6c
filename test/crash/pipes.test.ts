import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { fairlead } from "../support/program/cli.ts";
import * as reply from "../support/model/reply.ts";
import { type StoryContext, story } from "../support/editor/story.ts";
import { temporaryFolder } from "../support/temp.ts";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const recording = [
  "--require",
  file("../support/program/preload/record-paths.cjs"),
  file("../../bin/fairlead.js"),
  "acp",
];

/** The program starts once for each of about twenty files. */
const timeoutMs = 180_000;

const repositoryFiles = { "a.txt": "one\n", "AGENTS.md": "Be brief.\n", ".gitignore": "x\n" };
const homeFiles = {
  ".config/fairlead/AGENTS.md": "Be kind.\n",
  ".config/fairlead/agent/mine.md": "---\ndescription: mine\n---\nHi\n",
  ".config/fairlead/command/mine.md": "Say hi\n",
  ".config/fairlead/skill/mine/SKILL.md": "---\nname: mine\ndescription: mine\n---\nHi\n",
  ".local/share/fairlead/credentials.json": '{"test":{"apiKey":"key"}}',
};

const calls = (repository: string) => [
  reply.call("read", { filePath: join(repository, "a.txt") }),
  reply.call("grep", { pattern: "one" }),
  reply.call("bash", { command: "true" }),
  reply.call("skill", { name: "mine" }),
  reply.call("todowrite", { todos: [{ content: "a", status: "pending", priority: "low" }] }),
  reply.finish("tool_calls"),
];

/**
 * Loads a stored session and takes a turn in a new one. Each request must get a response, which may be an
 * error.
 */
async function play(
  { editor, model, repository }: StoryContext,
  stored?: string,
): Promise<string | undefined> {
  model.otherwise(({ toolResults }) => (toolResults.length > 0 ? "Done." : calls(repository.path)));
  if (stored !== undefined) await answered(editor.load(stored));
  const created = await answered(editor.newSession());
  if (created === undefined) return undefined;
  const { sessionId } = created;
  await answered(editor.prompt(sessionId, "Work"));
  await answered(editor.list());
  await answered(editor.closeSession(sessionId));
  return sessionId;
}

/** Undefined for an error response of the agent. */
async function answered<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Error && "code" in error && typeof error.code === "number") return undefined;
    throw error;
  }
}

/**
 * Paths that the program opens or looks for, at its start and in a turn, at which a user or a program may put
 * a file.
 */
function placesIn({ home, repository }: StoryContext): string[] {
  const recorded = readFileSync(join(home.path, "paths.txt"), "utf8").split("\n");
  rmSync(join(home.path, "paths.txt"));
  return [...new Set(recorded)].filter((path) => {
    const isOurs = path.startsWith(`${home.path}/`) || path.startsWith(`${repository.path}/`);
    // Files with random names, and git's own, are not looked for again.
    if (!isOurs || /\.tmp$|\/\.git(\/|$)|paths\.txt|a\.txt$/.test(path)) return false;
    return !existsSync(path) || lstatSync(path).isFile();
  });
}

function putPipe(path: string): void {
  rmSync(path, { force: true });
  mkdirSync(dirname(path), { recursive: true });
  execFileSync("mkfifo", [path]);
}

test(
  "a named pipe in place of any file that the program opens does not block it",
  async () => {
    await story({ files: repositoryFiles, homeFiles, program: recording }, async (context) => {
      const { editor } = context;
      const sessionId = await play(context);
      await play(context, sessionId);
      await editor.close();
      const places = placesIn(context);
      const there = places.filter((path) => existsSync(path));
      // Not in place of a folder that contains other listed paths.
      const missing = places.filter(
        (path) => !existsSync(path) && !places.some((other) => other.startsWith(`${path}/`)),
      );
      expect([there.length > 10, missing.length > 20]).toEqual([true, true]);
      for (const round of [...there.map((path) => [path]), missing]) {
        const before = round.map((path) => (existsSync(path) ? readFileSync(path) : undefined));
        for (const path of round) putPipe(path);
        await editor.restart();
        await editor.initialize();
        await play(context, sessionId).catch((error: unknown) => {
          throw new Error(`no answer with a pipe at ${round.join(", ")}`, { cause: error });
        });
        const { code } = await editor.close();
        expect([round, code]).toEqual([round, 0]);
        for (const [index, path] of round.entries()) {
          rmSync(path, { force: true, recursive: true });
          const content = before[index];
          if (content !== undefined) writeFileSync(path, content);
        }
      }
    });
  },
  timeoutMs,
);

test("a pipe in place of the log delays neither a prompt nor the program's exit", async () => {
  const env = { FAIRLEAD_LOG: "info" };
  await story({ env, initialize: false }, async ({ editor, model, home }) => {
    putPipe(join(home.path, ".local/state/fairlead/fairlead.log"));
    await editor.initialize();
    const { sessionId } = await editor.newSession();
    model.reply("Done.");
    expect((await editor.prompt(sessionId, "Work")).stopReason).toBe("end_turn");
    expect((await editor.close()).code).toBe(0);
    expect(editor.stderr).toContain("model call ended");
    const { stdout } = await fairlead(home.path, ["doctor"]);
    expect(stdout).toContain("fairlead.log is not a regular file");
  });
});

test("a pipe in the compile cache only slows the start, and doctor names it", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  const env = { XDG_CACHE_HOME: join(home.path, ".cache") };
  const code = join(env.XDG_CACHE_HOME, "fairlead/code");
  await fairlead(home.path, ["doctor"], { env });
  const [version = ""] = readdirSync(code);
  const [cached = ""] = readdirSync(join(code, version));
  putPipe(join(code, version, cached));
  const { exitCode, stdout } = await fairlead(home.path, ["doctor"], { env });
  expect(exitCode).toBe(1);
  expect(stdout).toContain(`${join(code, version, cached)} is not a regular file`);
});
