import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import type { SandboxProfile } from "../../../src/sandbox/profile.ts";
import { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { findSandboxProblem } from "./sandbox-problem.ts";

const problem = await findSandboxProblem();

/** Refusals of a connection by the sandbox; a host that does not answer is none of them. */
const refusals = ["ENETUNREACH", "EPERM", "EACCES", "EHOSTUNREACH"];

/** Prints the error code of a connection to an address without a host, then connects to its own port. */
const connections = `
  const net = require("net");
  const remote = net.connect(80, "192.0.2.1");
  remote.setTimeout(5000, () => remote.destroy(new Error("no answer")));
  remote.on("connect", () => console.log("connected")).on("error", (error) => {
    console.log(error.code ?? error.message);
    const server = net.createServer((socket) => socket.end("loopback\\n"));
    server.listen(0, "127.0.0.1", () => {
      net.connect(server.address().port, "127.0.0.1").on("close", () => server.close()).pipe(process.stdout);
    });
  });
`;

/** A workspace that commands may write, files beside it, and a sandbox. */
async function openPlace(more: Partial<SandboxProfile> = {}) {
  const folder = await temporaryFolder({
    "work/.git/hooks/sample": "",
    "work/.env": "SECRET",
    "work/c.js": connections,
    "other/a.txt": "other",
    "keys/id": "KEY",
  });
  const at = (path: string) => join(folder.path, path);
  const sandbox = new Sandbox({ env: () => process.env });
  const profile: SandboxProfile = {
    writable: [at("work")],
    pinned: [at("work/.git")],
    readOnly: [at("work/.git/hooks")],
    hidden: [at("work/.env"), at("keys")],
    temporary: await sandbox.temporary(),
    // On Linux a folder in /tmp is seen only if it is named.
    visible: [at("other"), at("keys"), dirname(process.execPath)],
    network: false,
    hosts: [],
    ...more,
  };
  return {
    at,
    async run(command: string) {
      const options = { cwd: at("work"), connections: undefined };
      const { argv, env } = await sandbox.confine(["/bin/sh", "-c", command], profile, options);
      const [program = "", ...args] = argv;
      return execa(program, args, { cwd: at("work"), env, reject: false, stdin: "ignore" });
    },
    async [Symbol.asyncDispose]() {
      sandbox.close();
      await folder.remove();
    },
  };
}

describe.runIf(problem === undefined)("the sandbox of this system", () => {
  test("lets a command write the workspace and its temporary folder, and nothing else", async () => {
    await using place = await openPlace();
    const written = await place.run(
      "echo new > new.txt && mkdir -p a/b && mv new.txt a/b/ && echo t > $TMPDIR/t && cat a/b/new.txt $TMPDIR/t",
    );
    expect(written).toMatchObject({ exitCode: 0, stdout: "new\nt" });
    const streams = "(echo out > /dev/stdout && echo more | tee /dev/fd/1 && echo gone > /dev/null) | cat";
    expect(await place.run(streams)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("out\nmore"),
    });
    for (const command of [
      `echo x > ${place.at("other/a.txt")}`,
      `echo x > ${place.at("other/b.txt")}`,
      `rm ${place.at("other/a.txt")}`,
      "echo x > .git/hooks/pre-commit",
      "rm .git/hooks/sample",
      "mv .git moved",
    ])
      expect([command, (await place.run(command)).exitCode]).not.toEqual([command, 0]);
    expect(await readFile(place.at("other/a.txt"), "utf8")).toBe("other");
    expect(existsSync(place.at("work/.git/hooks/sample"))).toBe(true);
    expect(existsSync(place.at("work/.git/hooks/pre-commit"))).toBe(false);
  });

  test("hides files and folders", async () => {
    await using place = await openPlace();
    expect(await place.run(`cat ${place.at("other/a.txt")}`)).toMatchObject({ exitCode: 0, stdout: "other" });
    for (const command of [
      "cat .env",
      `cat ${place.at("keys/id")}`,
      `ls ${place.at("keys")}`,
      "mv .env seen",
    ]) {
      const { exitCode, stdout } = await place.run(command);
      expect([command, stdout]).toEqual([command, ""]);
      expect([command, exitCode]).not.toEqual([command, 0]);
    }
    expect(await readFile(place.at("work/.env"), "utf8")).toBe("SECRET");
  });

  test("connects to ports of this computer only", async () => {
    await using place = await openPlace();
    const { stdout } = await place.run(`'${process.execPath}' c.js`);
    const [refusal, loopback] = stdout.split("\n");
    expect(refusals).toContain(refusal);
    expect(loopback).toBe("loopback");
  });

  test("connects as the computer does if the profile allows the network", async () => {
    await using place = await openPlace({ network: true });
    const server = createServer((_, response) => response.end("served")).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const get = `require("http").get("http://127.0.0.1:${port}", (answer) => answer.pipe(process.stdout))`;
    expect((await place.run(`'${process.execPath}' -e '${get}'`)).stdout).toBe("served");
    server.close();
  });
});
