import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { environment } from "../../support/program/environment.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { temporaryFolder, writeConfig } from "../../support/temp.ts";

const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));

/** Returns bash's completions for the last word. */
async function completed(script: string, words: readonly string[], home = tmpdir()): Promise<string[]> {
  const list = words.map((word) => `'${word}'`).join(" ");
  const ask = `COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _fairlead; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const start = `fairlead() { '${process.execPath}' '${program}' "$@"; }`;
  const { stdout } = await execa("bash", ["-c", `${start}\n${script}\n${ask}`], {
    cwd: home,
    env: environment(home),
    extendEnv: false,
  });
  return stdout.split("\n").filter((word) => word !== "");
}

test("a shell completes commands, subcommands, flags and values", async () => {
  await using home = await temporaryFolder();
  const { stdout: script } = await fairlead(home.path, ["completion", "bash"]);
  expect(await completed(script, ["fairlead", "se"])).toEqual(["setup", "sessions"]);
  expect(await completed(script, ["fairlead", "sessions", ""])).toEqual([
    "list",
    "show",
    "summary",
    "diff",
    "export",
    "view",
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
  expect(zsh).toContain(
    String.raw`'--mode=[the same as --agent; ACP'\''s name for it]:mode: _fairlead_values choosable-agents'`,
  );
  expect(zsh).toContain("'permissions:list permanent approvals of a project'");
  const fish = (await fairlead(home.path, ["completion", "fish"])).stdout;
  // Files are offered only after the complete name of a command.
  const config = "not __fish_seen_subcommand_from show set unset path check schema";
  expect(fish).toContain(`-f -n '__fish_seen_subcommand_from config; and ${config}' -a check`);
  const wrong = await fairlead(home.path, ["completion", "tcsh"], { cwd: join(home.path) });
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining("bash, zsh or fish")]);
});

test("a shell completes agents, models, sessions, servers and providers", async () => {
  await using home = await temporaryFolder();
  const model = await startModelServer();
  const mcp = { docs: { type: "local", command: ["none"], enabled: false } };
  await writeConfig(home.path, model.url, { mcp }, undefined, { "qwen3:8b": {}, "qwen3:32b": {} });
  model.reply("Hello.");
  await fairlead(home.path, ["run", "Hi"]);
  await model.close();
  const { stdout: script } = await fairlead(home.path, ["completion", "bash"]);
  const complete = (...words: string[]) => completed(script, ["fairlead", ...words], home.path);
  expect(await complete("run", "--agent", "")).toEqual(["build", "plan"]);
  expect(await complete("run", "--agent", "=", "p")).toEqual(["plan"]);
  expect(await complete("agents", "show", "ex")).toEqual(["explore"]);
  expect(await complete("run", "-m", "test/s")).toEqual(["test/scripted"]);
  // Bash splits words at colons.
  expect(await complete("run", "--model", "test/qwen3", ":", "8")).toEqual(["8b"]);
  expect(await complete("run", "--model", "test/qwen3", ":")).toEqual(["8b", "32b"]);
  expect(await complete("sessions", "show", "")).toEqual(["last", expect.stringMatching(/^ses_/)]);
  expect(await complete("mcp", "auth", "")).toEqual(["docs"]);
  expect(await complete("logout", "te")).toEqual(["test"]);
  expect(await complete("setup", "--editor", "z")).toEqual(["zed"]);
  const { stdout: sessions } = await fairlead(home.path, ["completion", "values", "sessions"]);
  expect(sessions).toMatch(/^last\tthe newest session of the folder\nses_\w+\tA scripted title$/);
  const wrong = await fairlead(home.path, ["completion", "values", "toString"]);
  expect(wrong.exitCode).toBe(2);
  const zsh = (await fairlead(home.path, ["completion", "zsh"])).stdout;
  expect(zsh).toContain("rest='*:value: _fairlead_values sessions'");
  const fish = (await fairlead(home.path, ["completion", "fish"])).stdout;
  expect(fish).toContain("-l agent -x -a '(fairlead completion values choosable-agents 2>/dev/null)'");
});
