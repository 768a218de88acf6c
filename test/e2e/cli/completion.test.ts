import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { temporaryFolder } from "../../support/temp.ts";

/** Returns bash's completions for the last word. */
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
    "summary",
    "export",
    "import",
    "delete",
    "stats",
  ]);
  expect(await completed(script, ["fairlead", "run", "--max"])).toEqual(["--max-steps", "--max-cost"]);
  expect(await completed(script, ["fairlead", "sessions", "stats", "--d"])).toEqual(["--days"]);
  expect(await completed(script, ["fairlead", "run", "--permission", "a"])).toEqual(["ask", "allow"]);
  expect(await completed(script, ["fairlead", "run", "--permission", "=", "a"])).toEqual(["ask", "allow"]);
  expect(await completed(script, ["fairlead", "run", "--permission", "="])).toHaveLength(3);
  expect(await completed(script, ["fairlead", "help", "tr"])).toEqual(["trace", "trust"]);
  const zsh = (await fairlead(home.path, ["completion", "zsh"])).stdout;
  expect(zsh).toContain(String.raw`'--mode=[the same; editors'\'' name for it]:mode:_files'`);
  expect(zsh).toContain("'permissions:list permanent approvals of a project'");
  const fish = (await fairlead(home.path, ["completion", "fish"])).stdout;
  // Files are offered only after the complete name of a command.
  const config = "not __fish_seen_subcommand_from show path check schema";
  expect(fish).toContain(`-f -n '__fish_seen_subcommand_from config; and ${config}' -a check`);
  const wrong = await fairlead(home.path, ["completion", "tcsh"], { cwd: join(home.path) });
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining("bash, zsh or fish")]);
});
