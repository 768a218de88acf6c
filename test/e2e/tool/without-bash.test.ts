import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { execFile } from "node:child_process";
import { expect, test } from "vitest";
import { toText } from "../../support/json.ts";
import { story } from "../../support/editor/story.ts";
import * as reply from "../../support/model/reply.ts";
import { temporaryFolder } from "../../support/temp.ts";

const programs = ["sh", "cat", "ls", "rm", "sleep", "sed", "grep"];

/** Creates a folder with a few programs, which are neither bash nor git. */
async function makePath(folder: string): Promise<string> {
  const bin = join(folder, "bin");
  await mkdir(bin);
  for (const name of programs) {
    const { stdout } = await promisify(execFile)("/bin/sh", ["-c", `command -v ${name}`]);
    await symlink(stdout.trim(), join(bin, name));
  }
  return bin;
}

test("a machine without bash and git runs commands in sh, and undoes what they changed", async () => {
  await using machine = await temporaryFolder();
  const env = { PATH: await makePath(machine.path) };
  const config = { permission: { bash: { "*": "ask", "ls *": "allow", "cat *": "allow" } } };
  const options = { env, config, permission: "allow_once" } as const;
  await story({ ...options, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    const bash = (command: string) => reply.call("bash", { command });
    model.reply(bash("cat a.txt && ls")).reply(bash("echo two > a.txt")).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(JSON.stringify(model.requests[0]?.body)).toContain("commands run in /bin/sh");
    expect(toText(model.requests[1]?.toolResults[0])).toContain("one");
    expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe("two\n");
    await editor.prompt(sessionId, "/undo");
    expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe("one\n");

    const titles = editor.permissionRequests.map(({ toolCall }) => toolCall.title);
    expect(titles).toEqual(["echo two > a.txt"]);
    // In bash this only compares two texts.
    model.reply(bash("ls && [[ b > a.txt ]]")).reply("Done.");
    await editor.prompt(sessionId, "Go on");
    expect(editor.permissionRequests.at(-1)?.toolCall.title).toBe("ls && [[ b > a.txt ]]");
  });
});
