import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { story } from "../../support/editor/story.ts";

test("the log shows source files and lines in stacks of the bundled program", async () => {
  await story({}, async ({ editor, model, home }) => {
    const { sessionId } = await editor.newSession();
    const folder = join(home.path, ".local/share/fairlead/storage/project");
    await rm(folder, { recursive: true, force: true });
    await writeFile(folder, "a file in place of the folder");
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    const log = join(home.path, ".local/state/fairlead/fairlead.log");
    const { stack } = await vi.waitFor(async () => {
      const lines = (await readFile(log, "utf8")).split("\n");
      return JSON.parse(lines.find((line) => line.includes("project not noted as seen")) ?? "");
    });

    expect(stack).not.toContain("dist");
    const [, path = "", line] = /\n +at [^\n]*?(src\/[\w/-]+\.ts):(\d+):\d+/.exec(stack) ?? [];
    const source = await readFile(join(import.meta.dirname, "../../..", path), "utf8");
    expect(source.split("\n")[Number(line) - 1]).toContain("new UserError(");
  });
});
