import { expect, test, vi } from "vitest";
import { toText } from "../../support/json.ts";
import { lacksHalfClosedPipes, lacksProcessGroups } from "../../support/platform/platform.ts";
import { isRunning } from "../../support/program/processes.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, story } from "../../support/editor/story.ts";

const config = { permission: { bash: "allow", edit: "allow", read: "allow", external_directory: "allow" } };

/** Runs a command in a turn and returns the model's view of its result. */
async function result({ editor, model }: StoryContext, input: Record<string, unknown>): Promise<string> {
  const { sessionId } = await editor.newSession();
  model.reply(reply.call("bash", input)).reply("Done.");
  await editor.prompt(sessionId, "Go");
  return toText(model.requests.at(-1)?.toolResults[0]) ?? "";
}

async function waitForEnd(pid: number): Promise<void> {
  await vi.waitFor(async () => expect(await isRunning(pid)).toBe(false), { timeout: 10_000 });
}

const withoutEnvironment = "env -i sleep 1000 >/dev/null 2>&1 & echo pid $!";

/** A command's background process that is found only by its process group. */
async function startUnmarked(context: StoryContext): Promise<number> {
  const output = await result(context, { command: withoutEnvironment });
  expect(output).toContain("still run in the background");
  return Number(/pid (\d+)/.exec(output)?.[1]);
}

test.skipIf(lacksProcessGroups)(
  "a background process with an emptied environment ends with the program",
  async () => {
    await story({ config }, async (context) => {
      const pid = await startUnmarked(context);
      await context.editor.close();
      await waitForEnd(pid);
    });
  },
);

test.skipIf(lacksProcessGroups)(
  "a background process with an emptied environment ends when the program is killed",
  async () => {
    await story({ config }, async (context) => {
      const pid = await startUnmarked(context);
      await result(context, { command: "sleep 1000 >/dev/null 2>&1 & echo marked" });
      await context.editor.kill();
      await waitForEnd(pid);
    });
  },
);

test.skipIf(lacksHalfClosedPipes)(
  "a command that reads its own output gets an end of file, not a time limit",
  async () => {
    await story({ config }, async (context) => {
      const program = [
        "for (const fd of [1, 2]) {",
        "  try { console.log(fd, require('fs').readSync(fd, Buffer.alloc(9))); }",
        "  catch (error) { console.log(fd, error.code); }",
        "}",
      ].join("\n");
      await context.repository.write({ "look.cjs": program });
      const output = await result(context, { command: `"${process.execPath}" look.cjs`, timeout: 10_000 });
      expect(output).toMatch(/^1 (0|EBADF|EOF)\n2 (0|EBADF|EOF)$/);
    });
  },
);

test("a command with a NUL character is refused before the user is asked", async () => {
  const asking = { permission: { bash: "ask" } };
  await story({ config: asking, permission: "allow_once" }, async (context) => {
    expect(await result(context, { command: "echo a\0b" })).toContain(
      "command: A command cannot contain a NUL character",
    );
    expect(context.editor.permissionRequests).toEqual([]);
  });
});
