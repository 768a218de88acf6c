import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test, vi } from "vitest";
import { plain } from "../../support/editor/clients.ts";
import { Editor } from "../../support/editor/editor.ts";
import { expectGolden } from "../../support/wire/golden.ts";
import { findChildren, findLeftoversWith, findProcessesWith } from "../../support/program/processes.ts";
import { story } from "../../support/editor/story.ts";
import { gitRepository, temporaryFolder, type TemporaryFolder } from "../../support/temp.ts";
import { agentText } from "../../support/transcript.ts";

const fakeAgent = [fileURLToPath(new URL("../../support/program/fake-agent-program.ts", import.meta.url))];

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

describe("a story", () => {
  test("gives an agent a model, a home and a repository, and checks all at the end", async () => {
    let home: TemporaryFolder | undefined;
    await story({ program: fakeAgent, files: { "a.txt": "a" } }, async (context) => {
      home = context.home;
      context.model.reply("A scripted model.");
      const { sessionId } = await context.editor.newSession();
      await context.editor.prompt(sessionId, "model");
      expect(agentText(context.editor.updates(sessionId))).toBe("A scripted model.");
      expect(await context.repository.git("ls-files")).toBe("a.txt");
      expect(await context.repository.git("status", "--porcelain")).toBe("");
    });
    expect(await findLeftoversWith("HOME", home?.path ?? "")).toEqual([]);
  });

  test("fails when the wire or the model server found a fault, and prints the wire", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    cleanups.push(async () => printed.mockRestore());
    const noisy = story({ program: fakeAgent, client: plain() }, async ({ editor }) => {
      await editor.prompt((await editor.newSession()).sessionId, "noise");
    });
    await expect(noisy).rejects.toThrow("[line] line 5: A line is not a JSON object: a stray line");
    const unasked = story({ program: fakeAgent }, async ({ model }) => {
      model.reply("never asked");
    });
    await expect(unasked).rejects.toThrow("1 scripted replies were not used.");
    expect(String(printed.mock.calls[0]?.[0])).toMatch(
      /The wire, its last lines:\n.*→ .*initialize[^]*← a stray line/,
    );
  });

  test("is compared with its golden files, which must exist", async () => {
    await story({ program: fakeAgent }, async ({ editor, repository, home }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "hello");
      const places = { cwd: repository.path, home: home.path };
      await expectGolden("harness", editor.wire, places);
      await expect(expectGolden("no-such-file", editor.wire, places, false)).rejects.toThrow(
        "from-agent.json is missing",
      );
    });
  });
});

describe("helper functions", () => {
  test("find processes by their parent and by their environment", async () => {
    const home = await temporaryFolder();
    cleanups.push(() => home.remove());
    const editor = new Editor({ home: home.path, cwd: home.path, program: fakeAgent });
    cleanups.push(() => editor.close());
    await editor.initialize();
    const pid = editor.pid ?? 0;
    expect((await findChildren(process.pid)).map((child) => child.pid)).toContain(pid);
    const marked = (await findProcessesWith("HOME", home.path)).map((child) => child.pid);
    expect(marked).toEqual(process.platform === "linux" ? [pid] : []);
    await editor.close();
    expect(await findLeftoversWith("HOME", home.path)).toEqual([]);
  });

  test("create a repository with one commit", async () => {
    await using repository = await gitRepository({ "src/a.ts": "export {};\n" });
    expect(await repository.git("log", "--format=%an %s")).toBe("Test First");
  });
});
