import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { plain, withFs, type ClientKind } from "../../support/editor/clients.ts";
import { playCalls, storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import * as reply from "../../support/model/reply.ts";

const story = storiesOfOneAgent();
const config = { permission: { edit: "allow", bash: "allow" } };
const text = "function total(list) {\n\treturn list.length;\n}\n\nmodule.exports = total;\n";
const files = { "src/a.js": text, "src/b.js": "const size = 1;\n", "long.txt": "line\n".repeat(3_000) };

const bash = (command: string) => reply.call("bash", { command });
const write = (filePath = "src/a.js") => reply.call("write", { filePath, content: "new\n" });
const edit = (oldString: string, newString: string, filePath = "src/a.js") =>
  reply.call("edit", { filePath, oldString, newString });
/** Differs slightly from the file. */
const tolerant = edit("    return  list.length;", "    return list.size;");

/**
 * Plays the steps with an editor that has no unsaved buffers. Returns the last result and the file's text.
 */
async function playPlain(
  ...steps: (reply.Step | ((context: StoryContext) => Promise<void>))[]
): Promise<{ last: string | undefined; now: string }> {
  let answer = { last: undefined as string | undefined, now: "" };
  await story({ files, config, client: plain() }, async (context) => {
    const bound = steps.map((step) => (typeof step === "function" ? () => step(context) : step));
    const results = await playCalls(context, ...bound);
    answer = { last: results.at(-1), now: await onDisk(context) };
  });
  return answer;
}

const onDisk = ({ repository }: StoryContext) => readFile(join(repository.path, "src/a.js"), "utf8");
const save = (content: string) => (context: StoryContext) =>
  writeFile(join(context.repository.path, "src/a.js"), content);

describe("a file that was not read", () => {
  test("is edited by text that occurs in it exactly once", async () => {
    const { last, now } = await playPlain(edit("list.length", "list.size"));
    expect(last).toMatch(/^Changed src\/a\.js/);
    expect(now).toContain("return list.size;");
  });

  test.each([
    ["a tolerant match", tolerant],
    ["a text that it has twice", edit("list", "items")],
    ["a new text for all of it", write()],
  ])("is not changed by %s", async (_, call) => {
    const { last, now } = await playPlain(call);
    expect(last).toMatch(/was not read in this session\. Read it first\./);
    expect(now).toBe(text);
  });

  test("is not overwritten after an exact edit", async () => {
    const { last } = await playPlain(edit("list.length", "list.size"), write());
    expect(last).toMatch(/Only a part of .* was shown/);
  });
});

describe("a file that a command showed", () => {
  test.each([
    "cat src/a.js",
    "cat -n src/a.js src/b.js",
    "cd src && cat a.js",
    "nl -ba src/a.js",
    "git status; cat src/*.js",
  ])("%s: may be overwritten", async (command) => {
    const { last, now } = await playPlain(bash(command), write());
    expect(last).toMatch(/^Wrote src\/a\.js/);
    expect(now).toBe("new\n");
  });

  test.each([
    "sed -n '1,3p' src/a.js",
    "head -3 src/a.js",
    "tail -n 4 src/a.js",
    "cat src/a.js | head -3",
    "nl -ba src/a.js | sed -n 1,3p",
    "grep -n return src/a.js",
    "grep -rn return src",
    "grep -n return src/a.js src/b.js",
  ])("%s: may be edited, but not overwritten", async (command) => {
    const { last } = await playPlain(bash(command), write());
    expect(last).toMatch(/Only a part of .* was shown in this session\. Read it first/);
    const { now } = await playPlain(bash(command), tolerant);
    expect(now).toContain("\treturn list.size;");
  });

  test("grep of the agent: may be edited, but not overwritten", async () => {
    const grep = reply.call("grep", { pattern: "return", path: "src" });
    expect((await playPlain(grep, write())).last).toMatch(/Only a part of .* was shown/);
    expect((await playPlain(grep, tolerant)).now).toContain("\treturn list.size;");
  });

  test.each([
    ["the command failed", "cat src/a.js missing"],
    ["its output went to a file", "cat src/a.js > copy.js"],
    ["only its lines were counted", "cat src/a.js | wc -l"],
    ["its lines were changed", "sed 's/list/items/' src/a.js"],
    ["nothing was found", "grep -rn absent src | head"],
    ["another file was found", "grep -rn size src"],
    ["only the end of the output was shown", "cat src/a.js long.txt"],
    ["it was shown before the command changed it", "cat src/a.js && echo '// end' >> src/a.js"],
    ["it was shown in a condition", "if cat src/a.js; then true; fi"],
  ])("is not known if %s", async (_, command) => {
    expect((await playPlain(bash(command), tolerant)).last).toMatch(/was not read in this session/);
  });

  test.each([
    ["written over", write()],
    ["edited by a tolerant match", tolerant],
  ])("is not %s if others saved it since", async (_, call) => {
    const theirs = text.replace("total", "sum");
    const { last, now } = await playPlain(bash("cat src/a.js"), save(theirs), call);
    expect(last).toMatch(/was changed since it was read\. Read it again/);
    expect(now).toBe(theirs);
  });

  test("is edited by exact text if another program saved it since, with a note", async () => {
    const { last, now } = await playPlain(
      bash("cat src/a.js"),
      save(`// mine\n${text}`),
      edit("return list.length;", "return list.size;"),
    );
    expect(last).toMatch(/The file had changed since it was read/);
    expect(now).toBe(`// mine\n${text.replace("length", "size")}`);
  });
});

describe("unsaved text of the user", () => {
  const typed = `${text}// typed\n`;
  async function playWithBuffer(...steps: reply.Step[]) {
    const client: ClientKind = withFs();
    const answer = { results: [] as string[], buffer: "" as string | undefined };
    await story({ files, config, client }, async (context) => {
      const path = join(context.repository.path, "src/a.js");
      client.buffers?.set(path, typed);
      answer.results = await playCalls(context, ...steps);
      answer.buffer = client.buffers?.get(path);
    });
    return answer;
  }

  test("survives an exact edit of a file that was not read", async () => {
    const { results, buffer } = await playWithBuffer(edit("list.length", "list.size"));
    expect(results).toEqual([expect.stringMatching(/^Changed src\/a\.js/)]);
    expect(buffer).toBe(typed.replace("length", "size"));
  });

  test.each([
    ["a write", write()],
    ["a tolerant edit", tolerant],
  ])("is not lost by %s after a command showed the file on the disk", async (_, call) => {
    const { results, buffer } = await playWithBuffer(bash("cat src/a.js"), call);
    expect(results[1]).toMatch(/was changed since it was read/);
    expect(buffer).toBe(typed);
  });
});

describe("secret files", () => {
  const secret = { ".env": "API_KEY=abc123\nOTHER=1\n" };

  test.each([
    ["that it has", "API_KEY=abc123"],
    ["that it has not", "API_KEY=abc124"],
  ])("text %s is not confirmed without permission to read", async (_, oldString) => {
    await story({ files: secret, config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      // The rejection ends the turn.
      model.reply(edit(oldString, "API_KEY=x", ".env"));
      await editor.prompt(sessionId, "Go on");
      expect(editor.permissionRequests).toHaveLength(1);
    });
  });
});
