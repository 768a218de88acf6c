import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { execFile } from "node:child_process";
import { expect, test } from "vitest";
import { toText } from "../../support/json.ts";
import { story } from "../../support/editor/story.ts";
import * as reply from "../../support/model/reply.ts";
import { windowsPrograms } from "../../support/platform/platform.ts";
import { temporaryFolder } from "../../support/temp.ts";

const programs = ["sh", "cat", "ls", "rm", "sleep", "sed", "grep"];
const isWindows = process.platform === "win32";

/** The shell of such a machine, and commands in its syntax. */
const system = isWindows
  ? {
      shell: process.env["ComSpec"] ?? "cmd.exe",
      rules: { "type *": "allow" },
      reading: "type a.txt",
      change: "echo two (2)>a.txt",
      changed: "two (2)\r\n",
      // In bash this only prints the kind of one word.
      different: "type 'a.txt & echo three>a.txt'",
    }
  : {
      shell: "/bin/sh",
      rules: { "ls *": "allow", "cat *": "allow" },
      reading: "cat a.txt && ls",
      change: "echo two > a.txt",
      changed: "two\n",
      // In bash this only compares two texts.
      different: "ls && [[ b > a.txt ]]",
    };

/** Returns a PATH with a few programs, which are neither bash nor git. */
async function makePath(folder: string): Promise<string> {
  if (isWindows) return windowsPrograms;
  const bin = join(folder, "bin");
  await mkdir(bin);
  for (const name of programs) {
    const { stdout } = await promisify(execFile)("/bin/sh", ["-c", `command -v ${name}`]);
    await symlink(stdout.trim(), join(bin, name));
  }
  return bin;
}

test("without bash and git, commands run in the system's shell and can be undone", async () => {
  await using machine = await temporaryFolder();
  const env = { PATH: await makePath(machine.path) };
  const config = { permission: { bash: { "*": "ask", ...system.rules } } };
  const options = { env, config, permission: "allow_once" } as const;
  await story({ ...options, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    const bash = (command: string) => reply.call("bash", { command });
    model.reply(bash(system.reading)).reply(bash(system.change)).reply("Done.");
    await editor.prompt(sessionId, "Go");
    const shell = JSON.stringify(system.shell).slice(1, -1);
    expect(JSON.stringify(model.requests[0]?.body)).toContain(`commands run in ${shell}`);
    expect(toText(model.requests[1]?.toolResults[0])).toContain("one");
    expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe(system.changed);
    await editor.prompt(sessionId, "/undo");
    expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe("one\n");

    const titles = editor.permissionRequests.map(({ toolCall }) => toolCall.title);
    expect(titles).toEqual([system.change]);
    model.reply(bash(system.different)).reply("Done.");
    await editor.prompt(sessionId, "Go on");
    expect(editor.permissionRequests.at(-1)?.toolCall.title).toBe(system.different);

    model.reply(bash("echo one\necho two")).reply("Done.");
    await editor.prompt(sessionId, "Go on");
    expect(toText(model.requests.at(-1)?.toolResults[0])).toContain(
      isWindows ? "cmd.exe runs only one line" : "one\ntwo",
    );
  });
});
