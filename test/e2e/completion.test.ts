import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import { fairlead } from "../support/cli.ts";
import { temporaryFolder } from "../support/temp.ts";

/** What bash would offer for the last of the words. */
async function completed(script: string, words: readonly string[]): Promise<string[]> {
  const list = words.map((word) => `'${word}'`).join(" ");
  const ask = `COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _fairlead; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await execa("bash", ["-c", `${script}\n${ask}`]);
  return stdout.split("\n").filter((word) => word !== "");
}

test("a shell completes commands, verbs, flags and values", async () => {
  await using home = await temporaryFolder();
  const { stdout: script } = await fairlead(home.path, ["completion", "bash"]);
  expect(await completed(script, ["fairlead", "se"])).toEqual(["setup", "sessions"]);
  expect(await completed(script, ["fairlead", "sessions", ""])).toEqual([
    "list",
    "show",
    "export",
    "import",
    "delete",
    "stats",
  ]);
  expect(await completed(script, ["fairlead", "run", "--max"])).toEqual(["--max-steps", "--max-cost"]);
  expect(await completed(script, ["fairlead", "sessions", "stats", "--d"])).toEqual(["--days"]);
  expect(await completed(script, ["fairlead", "run", "--permission", "a"])).toEqual(["ask", "allow"]);
  for (const shell of ["zsh", "fish"]) {
    const { exitCode, stdout } = await fairlead(home.path, ["completion", shell]);
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining("max-cost")]);
  }
  const wrong = await fairlead(home.path, ["completion", "tcsh"], { cwd: join(home.path) });
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining("bash, zsh or fish")]);
});
