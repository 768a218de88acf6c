import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fairlead, type CommandResult } from "../../support/program/cli.ts";
import {
  byHand,
  type OAuthFaults,
  type OAuthServer,
  startOAuthServer,
  visit,
} from "../../support/mcp/mcp-oauth-server.ts";
import { findLeftoversWith } from "../../support/program/processes.ts";
import { authorizeInTerminal, RunningCommand } from "../../support/program/running-command.ts";
import { everything } from "../../support/mcp/mcp.ts";
import { gitRepository, temporaryFolder, type TemporaryFolder } from "../../support/temp.ts";

interface Scene {
  server: OAuthServer;
  home: TemporaryFolder;
  run: (...args: string[]) => Promise<CommandResult>;
}

async function scene(play: (scene: Scene) => Promise<void>, faults: OAuthFaults = {}): Promise<void> {
  await using server = await startOAuthServer(faults);
  await using home = await temporaryFolder({}, "fairlead-home-");
  const mcp = {
    notes: { type: "remote", url: server.url, timeout: 5_000 },
    files: { type: "local", command: ["files-server"] },
  };
  await home.write({ ".config/fairlead/fairlead.json": JSON.stringify({ mcp }) });
  await play({ server, home, run: (...args) => fairlead(home.path, args) });
}

describe("fairlead mcp auth", () => {
  test("prints the address, waits for the browser, and remembers the login until logout", async () => {
    await scene(async ({ server, home, run }) => {
      const running = new RunningCommand(home.path, ["mcp", "auth", "notes"]);
      expect(await visit(await running.address())).toBe(200);
      const { exitCode, stdout, stderr } = await running.result;
      expect([exitCode, stdout]).toEqual([0, expect.stringContaining('"notes" is authorized.')]);
      expect(stderr).toContain(`To let Fairlead use the MCP server "notes" (${server.url})`);
      const log = await readFile(join(home.path, ".local/state/fairlead/fairlead.log"), "utf8").catch(
        () => "",
      );
      expect(`${stdout}${stderr}${log}`).not.toMatch(/access-|refresh-|code-/);
      const forgotten = `Removed the authorization of ${server.url}.`;
      expect(await run("mcp", "logout", "notes")).toMatchObject({ exitCode: 0, stdout: forgotten });
      const nothing = `No authorization of ${server.url} is stored.`;
      expect(await run("mcp", "logout", server.url)).toMatchObject({ exitCode: 0, stdout: nothing });
      expect((await run("mcp", "logout", "--all")).stdout).toBe("No authorizations are stored.");
    });
  });

  test("accepts the address at which a browser on another computer ended, and no other", async () => {
    await scene(async ({ home }) => {
      const running = new RunningCommand(home.path, ["mcp", "auth", "--json", "notes"]);
      const address = await running.address();
      const { headers } = await fetch(address, { redirect: "manual" });
      running.type("what now?");
      await running.waitForOutput("Not an address");
      running.type("https://elsewhere.example/?code=stolen&state=guessed");
      await running.waitForOutput("does not belong to this authorization");
      running.type(headers.get("location") ?? "");
      const { exitCode, stdout } = await running.result;
      expect([exitCode, JSON.parse(stdout)]).toEqual([
        0,
        { name: "notes", url: expect.stringContaining("/mcp"), outcome: "authorized" },
      ]);
    });
  });

  test("reports what went wrong, and ends immediately when it is interrupted", async () => {
    await scene(
      async ({ server, home }) => {
        const denied = new RunningCommand(home.path, ["mcp", "auth", "notes"]);
        await visit(await denied.address());
        expect(await denied.result).toMatchObject({
          exitCode: 1,
          stdout: "",
          stderr: expect.stringContaining('"notes" was not authorized: access was denied.'),
        });
        const stopped = new RunningCommand(home.path, ["mcp", "auth", "notes"]);
        await stopped.address();
        stopped.interrupt();
        expect((await stopped.result).exitCode).toBe(130);
        server.faults.registration = "refused";
        await fairlead(home.path, ["mcp", "logout", "notes"]);
        const refused = await fairlead(home.path, ["mcp", "auth", "notes"]);
        expect([refused.exitCode, refused.stderr]).toEqual([
          1,
          expect.stringContaining("did not register this program (HTTP 403"),
        ]);
      },
      { callback: "denied" },
    );
  });

  test("lists the servers for an unknown name, and explains which cannot be authorized", async () => {
    await scene(async ({ run }) => {
      const unknown = await run("mcp", "auth", "nots");
      expect([unknown.exitCode, unknown.stderr]).toEqual([
        1,
        'fairlead: There is no MCP server "nots"; configured remote servers: notes.',
      ]);
      const local = await run("mcp", "auth", "files");
      expect([local.exitCode, local.stderr]).toEqual([1, expect.stringContaining("runs on this computer")]);
      for (const args of [
        ["mcp", "auth"],
        ["mcp", "logout"],
        ["mcp", "auth", "a", "b"],
        ["mcp", "x"],
      ])
        expect((await run(...args)).exitCode).toBe(2);
    });
  });

  test("does not print the secret of a configured client", async () => {
    await scene(
      async ({ server, home }) => {
        const [, { client_id: clientId, client_secret: clientSecret = "" } = { client_id: "" }] = byHand;
        const notes = { type: "remote", url: server.url, oauth: { clientId, clientSecret } };
        await home.write({ ".config/fairlead/fairlead.json": JSON.stringify({ mcp: { notes } }) });
        const running = new RunningCommand(home.path, ["mcp", "auth", "notes"]);
        await visit(await running.address());
        const { exitCode, stdout, stderr } = await running.result;
        expect([exitCode, `${stdout}${stderr}`.includes(clientSecret)]).toEqual([1, false]);
      },
      { token: "refused" },
    );
  });
});

describe("fairlead mcp list", () => {
  test("connects to each server and shows the result, for people and for programs", async () => {
    await scene(async ({ server, home, run }) => {
      const mcp = {
        notes: { type: "remote", url: server.url },
        things: everything(),
        gone: { type: "local", command: ["no-such-program", "--flag"] },
        later: { type: "remote", url: "https://later.example/mcp", enabled: false },
      };
      await home.write({ ".config/fairlead/fairlead.json": JSON.stringify({ mcp }) });
      const before = await run("mcp", "list");
      expect([before.exitCode, before.stderr]).toEqual([0, ""]);
      const [notes, todo, things, ...rest] = before.stdout.split("\n");
      expect([notes, todo?.trim()]).toEqual([
        expect.stringMatching(new RegExp(`^notes +needs authorization +${server.url}$`)),
        "fairlead mcp auth notes",
      ]);
      expect(things).toMatch(/^things +connected, \d+ tools +\S+node/);
      expect(rest.join("\n")).toMatch(
        /gone +failed +no-such-program --flag\n.*no-such-program.*\nlater +disabled/s,
      );
      await authorizeInTerminal(home.path, "notes");
      const rows: unknown = JSON.parse((await run("mcp", "list", "--json")).stdout);
      expect(rows).toEqual([
        {
          name: "notes",
          type: "remote",
          where: server.url,
          state: "connected",
          tools: ["count_notes"],
          prompts: [],
          resources: [],
          notes: [],
        },
        expect.objectContaining({
          name: "things",
          state: "connected",
          tools: expect.arrayContaining(["echo"]),
        }),
        expect.objectContaining({ name: "gone", state: "failed", reason: expect.stringMatching(/./) }),
        expect.objectContaining({ name: "later", state: "disabled", where: "https://later.example/mcp" }),
      ]);
      expect(await findLeftoversWith("HOME", home.path)).toEqual([]);
    });
  });

  test("says that nothing is configured, and lists servers that wait for trust", async () => {
    await using home = await temporaryFolder({}, "fairlead-home-");
    const mcp = { evil: { type: "local", command: ["touch", "started"] } };
    await using repository = await gitRepository({ "fairlead.json": JSON.stringify({ mcp }) });
    const { exitCode, stdout, stderr } = await fairlead(home.path, ["mcp", "list"], { cwd: repository.path });
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining("No MCP servers are configured.")]);
    expect(stderr).toContain(`fairlead trust add ${repository.path}`);
    expect(existsSync(join(repository.path, "started"))).toBe(false);
  });
});
