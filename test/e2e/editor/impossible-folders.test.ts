import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import { story } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";

/** In the first, the system reports a missing folder although its parent exists. In the second, a file is in the way. */
const nowhere = async (home: string): Promise<string> => {
  if (process.platform === "linux") return "/proc/nowhere/deeper";
  await writeFile(join(home, "file"), "");
  return join(home, "file", "deeper");
};

/** The code of the system's error for a folder in that place. */
const code = process.platform === "linux" ? "ENOENT" : process.platform === "win32" ? "EEXIST" : "ENOTDIR";

/** The folders in a home without variables for them. */
const [data, state, cache] =
  process.platform === "win32"
    ? ["AppData/Local/fairlead", "AppData/Local/State/fairlead", "AppData/Local/Cache/fairlead"]
    : [".local/share/fairlead", ".local/state/fairlead", ".cache/fairlead"];

const homeIn = (folder: string) => ({
  HOME: folder,
  USERPROFILE: folder,
  XDG_CONFIG_HOME: "",
  XDG_DATA_HOME: "",
  XDG_CACHE_HOME: "",
  XDG_STATE_HOME: "",
});

describe("without a writable location for folders", () => {
  test("doctor names each folder and the variable that moves it", async () => {
    await using place = await temporaryFolder();
    const folder = await nowhere(place.path);
    const { exitCode, stdout } = await fairlead(place.path, ["doctor", "--json"], { env: homeIn(folder) });
    expect(exitCode).toBe(1);
    const findings: unknown = JSON.parse(stdout);
    const toldOf = (what: string, found: string, path: string, variable: string) => ({
      what,
      found,
      todo: expect.stringContaining(
        `Make ${join(folder, path)} writable, or set HOME or ${variable} to a place that is: `,
      ),
    });
    expect(findings).toEqual(
      expect.arrayContaining([
        toldOf("Sessions", "cannot be stored", data, "XDG_DATA_HOME"),
        toldOf("Log", "cannot be written", state, "XDG_STATE_HOME"),
        toldOf("Cache", "cannot be written: starts are slower", cache, "XDG_CACHE_HOME"),
      ]),
    );
  });

  test("a run and an editor's session fail with advice, and a key is not stored", async () => {
    await story({ initialize: false }, async ({ model, repository, home }) => {
      const folder = await nowhere(home.path);
      const env = { XDG_DATA_HOME: folder };
      const notice =
        process.platform === "linux"
          ? `no folder can be made there (${code}). Set HOME or XDG_DATA_HOME to a place where one can`
          : `there is a file where a folder should be (${code}). Move that file away`;
      const run = await fairlead(home.path, ["run", "Hello"], { cwd: repository.path, env });
      expect([run.exitCode, run.stdout]).toEqual([1, ""]);
      expect(run.stderr).toContain(notice);
      const editor = new Editor({ home: home.path, cwd: repository.path, env });
      await editor.initialize();
      expect((await expectFailure(editor.newSession())).message).toContain(notice);
      await editor.close();
      expect(model.requests).toEqual([]);
      const words = "setup --provider openai --key-from stdin --model gpt-5 --editor none --no-test";
      const setup = await fairlead(home.path, words.split(" "), { input: "a-key", env });
      expect(setup.exitCode).toBe(1);
      expect(setup.stderr).toContain(
        `${join(folder, "fairlead/credentials.json")} cannot be written: ${code}`,
      );
    });
  });

  test("the program starts without its cache and its log, and works", async () => {
    await story({ initialize: false }, async ({ model, repository, home }) => {
      const folder = await nowhere(home.path);
      const env = { XDG_CACHE_HOME: folder, XDG_STATE_HOME: folder, FAIRLEAD_LOG: "debug" };
      model.reply("Hello.");
      const run = await fairlead(home.path, ["run", "Hello"], { cwd: repository.path, env });
      expect([run.exitCode, run.stdout]).toEqual([0, "Hello."]);
    });
  });
});

test("folder variables without an absolute path are ignored, and doctor reports them", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using work = await temporaryFolder();
  const names = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"];
  const env = Object.fromEntries(names.map((name) => [name, `relative-${name}`]));
  const { exitCode, stdout } = await fairlead(home.path, ["doctor"], { cwd: work.path, env });
  expect(exitCode).toBe(1);
  for (const name of names) {
    expect(stdout).toContain(`${name} is ignored: "relative-${name}" is not an absolute path`);
    expect(stdout).toContain(`Set ${name} to an absolute path, or remove it.`);
  }
  expect(stdout).toContain(`stored in ${join(home.path, data)}`);
  expect(await readdir(work.path)).toEqual([]);
});
