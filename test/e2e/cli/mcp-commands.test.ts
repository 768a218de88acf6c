import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { everything, faulty } from "../../support/mcp/mcp.ts";
import { fairlead } from "../../support/program/cli.ts";
import { temporaryFolder } from "../../support/temp.ts";

async function place(mcp: Record<string, unknown> = {}) {
  const home = await temporaryFolder({
    ".config/fairlead/fairlead.json": JSON.stringify({ theme: "dark", mcp }),
  });
  const path = join(home.path, ".config/fairlead/fairlead.json");
  return {
    write: (files: Record<string, string>) => home.write(files),
    run: (...args: string[]) => fairlead(home.path, args),
    config: async (): Promise<unknown> => JSON.parse(await readFile(path, "utf8")),
    [Symbol.asyncDispose]: () => home.remove(),
  };
}

describe("fairlead mcp add", () => {
  test("adds an address with headers and a command with variables; keeps other entries", async () => {
    await using here = await place();
    const header = ["--header", "authorization=Bearer {env:TOKEN}"];
    expect((await here.run("mcp", "add", "notes", "https://notes.example/mcp", ...header)).exitCode).toBe(0);
    const command = ["npx", "-y", "server", "--root=/data"];
    const added = await here.run("mcp", "add", "--env", "LOG=1", "files", "--", ...command);
    expect(added).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("fairlead mcp test files") });
    expect(await here.config()).toEqual({
      theme: "dark",
      mcp: {
        notes: {
          type: "remote",
          url: "https://notes.example/mcp",
          headers: { authorization: "Bearer {env:TOKEN}" },
        },
        files: { type: "local", command, environment: { LOG: "1" } },
      },
    });
  });

  test.each([
    [["a b", "https://a.example"], "is not a valid server name"],
    [["notes", "https://a.example", "more"], "an address takes no arguments"],
    [["notes", "https://a.example", "--env", "A=1"], "--env is for programs"],
    [["notes", "--header", "A=1", "--", "server"], "--header is for addresses"],
    [["notes", "--env", "A", "--", "server"], "--env takes NAME=VALUE"],
    [["known", "https://a.example"], "fairlead mcp remove known"],
    [["notes", "--env", "KEY=ghp_0123456789abcdefghijABCDEFGHIJ012345", "--", "server"], "{env:NAME}"],
  ])("refuses %j", async (args, reason) => {
    const known = { known: { type: "local", command: ["server"] } };
    await using here = await place(known);
    const { exitCode, stderr } = await here.run("mcp", "add", ...args);
    expect([exitCode === 0, stderr]).toEqual([false, expect.stringContaining(reason)]);
    expect(await here.config()).toEqual({ theme: "dark", mcp: known });
  });
});

test("fairlead mcp add --from adds servers without keys; doctor names them", async () => {
  await using here = await place({ known: { type: "local", command: ["server"] } });
  await here.write({
    ".claude.json": JSON.stringify({
      mcpServers: {
        known: { command: "other" },
        files: { command: "npx", args: ["-y", "server"], env: { LOG: "1", FILES_API_KEY: "secret-1" } },
        notes: { url: "https://notes.example/mcp", headers: { Authorization: "Bearer secret-2" } },
        asks: { command: "server", args: ["${input:path}"] },
        odd: { kind: "odd" },
      },
    }),
  });
  const before = await here.run("doctor", "--offline");
  expect(before.stdout).toMatch(
    /Claude Code has: files, notes, asks, odd\s.*\n?.*fairlead mcp add --from claude-code/,
  );
  const named = await here.run("mcp", "add", "--from", "claude-code", "files");
  expect(named).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("FILES_API_KEY") });
  const { stdout } = await here.run("mcp", "add", "--from", "claude-code");
  expect(stdout).toContain('Not added: "known" is already in');
  expect(stdout).toContain('Not added: "asks", because it contains ${input:…}');
  expect(stdout).toContain('Not added: "odd", because it has neither a command nor an address.');
  expect(stdout).toContain("Set these variables: NOTES_AUTHORIZATION");
  expect(await here.config()).toEqual({
    theme: "dark",
    mcp: {
      known: { type: "local", command: ["server"] },
      files: {
        type: "local",
        command: ["npx", "-y", "server"],
        environment: { LOG: "1", FILES_API_KEY: "{env:FILES_API_KEY}" },
      },
      notes: {
        type: "remote",
        url: "https://notes.example/mcp",
        headers: { Authorization: "Bearer {env:NOTES_AUTHORIZATION}" },
      },
    },
  });
  expect((await here.run("mcp", "add", "--from", "claude-code", "nobody")).stderr).toContain(
    "which has: known,",
  );
  expect((await here.run("mcp", "add", "--from", "vscode")).stderr).toContain("VS Code has no settings at");
});

test("fairlead mcp remove removes a server, and lists the others for an unknown name", async () => {
  await using here = await place({ one: { type: "remote", url: "https://one.example/mcp" } });
  expect((await here.run("mcp", "remove", "two")).stderr).toContain("which has: one");
  const { stdout } = await here.run("mcp", "remove", "one");
  expect(stdout).toContain("fairlead mcp logout https://one.example/mcp");
  expect(await here.config()).toEqual({ theme: "dark", mcp: {} });
});

test("fairlead mcp test connects to one server and lists its tools", async () => {
  await using here = await place({ good: everything(), bad: faulty("dies-at-start") });
  const good = await here.run("mcp", "test", "good");
  expect([good.exitCode, good.stdout]).toEqual([
    0,
    expect.stringMatching(/^good {2}connected, [^]*\n {2}echo\n/),
  ]);
  const bad = await here.run("mcp", "test", "bad");
  expect([bad.exitCode, bad.stdout]).toEqual([1, expect.stringContaining("Cannot find the database")]);
  expect((await here.run("mcp", "test", "none")).stderr).toContain('There is no MCP server "none"');
});
