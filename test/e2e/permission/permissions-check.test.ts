import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { evaluate } from "../../../src/permission/judge.ts";
import { findOwnConfigurationReason } from "../../../src/permission/own-configuration.ts";
import type { ShellContext } from "../../../src/shell/facts.ts";
import { listNamesSync } from "../../../src/workspace/folder-names.ts";
import { realPathSync } from "../../../src/workspace/files/real-path.ts";
import { fairlead } from "../../support/program/cli.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { requestsFor, rows, ruleSets } from "../../unit/shell/shell-table.ts";

const checkedSchema = z.object({
  command: z.string(),
  action: z.enum(["allow", "ask", "deny"]),
  parts: z.array(
    z.object({
      permission: z.string(),
      text: z.string(),
      action: z.enum(["allow", "ask", "deny"]),
      rule: z.object({ permission: z.string(), pattern: z.string(), action: z.string() }).optional(),
      reason: z.string(),
    }),
  ),
});

const parseLines = (stdout: string) =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => checkedSchema.parse(JSON.parse(line)));

const withRules = (permission: unknown) => ({
  ".config/fairlead/fairlead.json": JSON.stringify({ permission }),
});

describe("fairlead permissions check", () => {
  test("decides the whole table like a running agent", async () => {
    await using home = await temporaryFolder();
    await using workspace = await temporaryFolder({
      ".env": "",
      "README.md": "",
      "prod.env": "",
      "src/.env": "",
      "src/a.ts": "",
      "src/b.ts": "",
      "config/live.env": "",
      "config/a.json": "",
      "docs/a.md": "",
    });
    await mkdir(join(workspace.path, ".git"));
    await symlink("/etc", join(workspace.path, "linked"));
    await symlink("src", join(workspace.path, "inner"));
    await symlink(".env", join(workspace.path, "notes.txt"));
    await symlink("/etc/out.md", join(workspace.path, "docs/out.md"));
    const context: ShellContext = {
      cwd: workspace.path,
      roots: [workspace.path],
      home: home.path,
      resolve: realPathSync,
      findCriticalReason: findOwnConfigurationReason,
      list: listNamesSync,
    };
    for (const [name, rules] of Object.entries(ruleSets)) {
      const own = rules.slice(ruleSets.defaults.length);
      // The output and skill folders in the table differ from those of this home.
      const isHere = (command: string) => !/[\n\r]|\/data\//.test(command) && command.trim() !== "";
      const table = rows.filter((row) => row.rules === name && isHere(row.command));
      const permission: Record<string, Record<string, string>> = {};
      for (const rule of own) (permission[rule.permission] ??= {})[rule.pattern] = rule.action;
      await home.write(withRules(permission));
      const input = table.map(({ command }) => `${command}\n`).join("");
      const { stdout, stderr, exitCode } = await fairlead(home.path, ["permissions", "check", "--json"], {
        cwd: workspace.path,
        input,
      });
      expect([exitCode, stderr]).toEqual([0, ""]);
      const decided = parseLines(stdout).map(({ command, action }) => [command, action]);
      const engine = table.map(({ command }) => [
        command,
        evaluate(requestsFor(command.trim(), context), rules).action,
      ]);
      expect(decided).toEqual(engine);
    }
  });

  test("prints the parts with rule and reason, as readable text", async () => {
    await using home = await temporaryFolder(
      withRules({ bash: { "*": "ask", "git status *": "allow", "rm *": "deny" } }),
    );
    await using workspace = await temporaryFolder();
    const where = { cwd: workspace.path };
    const check = (...args: string[]) => fairlead(home.path, ["permissions", "check", ...args], where);
    expect((await check("git status && rm x")).stdout).toBe(
      [
        "deny  git status && rm x",
        '  allow bash               git status  (runs git status; the rule bash: "git status *" says allow)',
        '  allow edit               x  (writes x; the rule *: "*" says allow)',
        '  deny  bash               rm x  (runs rm x; the rule bash: "rm *" says deny)',
      ].join("\n"),
    );
    expect(parseLines((await check("--json", "git status")).stdout)).toEqual([
      {
        command: "git status",
        action: "allow",
        parts: [
          {
            permission: "bash",
            text: "git status",
            action: "allow",
            rule: { permission: "bash", pattern: "git status *", action: "allow" },
            reason: 'runs git status; the rule bash: "git status *" says allow',
          },
        ],
      },
    ]);
  });

  test("runs nothing and writes nothing", async () => {
    await using home = await temporaryFolder();
    await using workspace = await temporaryFolder();
    await fairlead(home.path, ["permissions", "check"], {
      cwd: workspace.path,
      input: "touch made\n$(touch made)\n",
    });
    expect(listNamesSync(workspace.path)).toEqual([]);
  });

  test("asks in plan for what the user allows elsewhere", async () => {
    await using home = await temporaryFolder(withRules("allow"));
    const { stdout } = await fairlead(home.path, ["permissions", "check", "--json", "--agent", "plan"], {
      input: "ls\ntouch a\nnpm test\necho x > a\n",
    });
    expect(parseLines(stdout).map(({ action }) => action)).toEqual(["allow", "deny", "ask", "deny"]);
  });

  test("accepts thousands of lines, and unusual line ends", async () => {
    await using home = await temporaryFolder();
    const odd = ["ls\u2028rm x", "ls \u202e", "echo a\rb"];
    const many = Array.from({ length: 5_000 }, (_, index) => `cat file-${index}.txt | grep x`);
    const input = `${[...odd, "", "ls\r", ...many].join("\n")}\n`;
    const { stdout } = await fairlead(home.path, ["permissions", "check", "--json"], { input });
    const checked = parseLines(stdout);
    expect(checked.map(({ command }) => command)).toEqual([...odd, "ls", ...many]);
    expect(checked.slice(0, 4).map(({ action }) => action)).toEqual(["ask", "ask", "ask", "allow"]);
  });

  test("reports with its exit code that it could not decide", async () => {
    await using home = await temporaryFolder();
    const codes = [
      await fairlead(home.path, ["permissions", "check", "--agent", "nobody", "ls"]),
      await fairlead(home.path, ["permissions", "check", "--cwd", join(home.path, "none"), "ls"]),
      await fairlead(home.path, ["permissions", "fly"]),
    ].map(({ exitCode, stdout }) => [exitCode, stdout]);
    expect(codes).toEqual([
      [2, ""],
      [1, ""],
      [2, ""],
    ]);
  });
});
