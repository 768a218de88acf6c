import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { story } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { toolCalls } from "../../support/transcript.ts";

/** Node creates the entries below it. */
const compiledCode = "cache/fairlead/code";

/** Lists paths below the folder with rights for other users, as `path mode`. */
async function openToOthers(folder: string): Promise<string[]> {
  const found: string[] = [];
  const { mode } = await lstat(folder);
  if ((mode & 0o077) !== 0) found.push(`${folder} ${(mode & 0o777).toString(8)}`);
  if ((mode & 0o170000) !== 0o040000 || folder.endsWith(compiledCode)) return found;
  for (const entry of await readdir(folder)) found.push(...(await openToOthers(join(folder, entry))));
  return found;
}

test("nobody but the owner can enter or read what the program stores", async () => {
  const before = process.umask(0o022);
  await using cache = await temporaryFolder();
  try {
    const config = { permission: { edit: "allow", bash: "allow" } };
    const files = { "a.txt": "one\n" };
    const env = { FAIRLEAD_LOG: "debug", XDG_CACHE_HOME: join(cache.path, "cache") };
    await story({ config, files, env }, async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" }))
        .reply(reply.call("bash", { command: "seq 100000" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual(
        Array(3).fill("completed"),
      );
      await editor.close();
      const stored = [".local/share/fairlead", ".local/state/fairlead"].map((name) => join(home.path, name));
      const folders = [...stored, env.XDG_CACHE_HOME];
      expect(await readdir(join(home.path, ".local/share/fairlead"))).toEqual(
        expect.arrayContaining(["file-locks", "snapshot", "storage", "tool-output"]),
      );
      const open = await Promise.all(folders.map((folder) => openToOthers(folder)));
      expect(open.flat()).toEqual([]);
    });
  } finally {
    process.umask(before);
  }
});
