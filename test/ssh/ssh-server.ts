import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { userInfo } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { z } from "zod";
import { environment } from "../support/program/environment.ts";
import { temporaryFolder } from "../support/temp.ts";
import { Bell } from "../support/waiting.ts";

const program = fileURLToPath(new URL("../../bin/fairlead.js", import.meta.url));

/** An ssh server on this computer. Its sessions belong to this user and have the given home folder. */
export interface SshServer extends AsyncDisposable {
  /** Returns the command line that runs a command there. */
  commandLine(options: readonly string[], command: string): string[];
}

export interface SshServerOptions {
  readonly sshd: string;
  /** HOME of all sessions, where start-up files of the shell are read. */
  readonly home: string;
}

/** Starts a server with fresh keys, on a free port of the loopback interface. */
export async function startSshServer({ sshd, home }: SshServerOptions): Promise<SshServer> {
  const folder = await temporaryFolder({ banner: "Authorized users only.\n" }, "fairlead-sshd-");
  const place = (name: string) => join(folder.path, name);
  const bin = place("bin");
  await mkdir(bin);
  await symlink(program, join(bin, "fairlead"));
  for (const name of ["host", "user"])
    await execa("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", place(name)]);
  const port = await findFreePort();
  const { PATH = "", ...others } = environment(home);
  const variables = { ...others, PATH: [bin, dirname(process.execPath), PATH].join(delimiter) };
  const settings = [
    `Port ${port}`,
    "ListenAddress 127.0.0.1",
    `HostKey ${place("host")}`,
    `AuthorizedKeysFile ${place("user.pub")}`,
    `PidFile ${place("pid")}`,
    `Banner ${place("banner")}`,
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "UsePAM no",
    "StrictModes no",
    "AcceptEnv *",
    `SetEnv ${Object.entries(variables)
      .map(([name, value]) => `"${name}=${value}"`)
      .join(" ")}`,
  ];
  await writeFile(place("config"), settings.join("\n"));
  // A server that runs as root needs this folder of its package.
  if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
  const server = spawn(sshd, ["-D", "-e", "-f", place("config")], { stdio: ["ignore", "ignore", "pipe"] });
  await untilListening(server);
  const trust = ["IdentitiesOnly=yes", "StrictHostKeyChecking=no", `UserKnownHostsFile=${place("known")}`];
  const options = [
    "-F",
    "none",
    "-p",
    String(port),
    "-i",
    place("user"),
    ...trust.flatMap((one) => ["-o", one]),
  ];
  return {
    commandLine: (more, command) => ["ssh", ...options, ...more, `${userInfo().username}@127.0.0.1`, command],
    [Symbol.asyncDispose]: async () => {
      const exited = once(server, "exit");
      server.kill();
      await exited;
      await folder.remove();
    },
  };
}

async function untilListening(server: ChildProcess): Promise<void> {
  const bell = new Bell();
  let log = "";
  server.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log += text;
    bell.ring();
  });
  server.once("exit", () => bell.ring());
  const probe = () => {
    if (server.exitCode !== null) throw new Error(`sshd ended: ${log}`);
    return log.includes("Server listening") || undefined;
  };
  await bell.until(probe, "sshd to listen");
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = z.object({ port: z.number() }).parse(probe.address());
  probe.close();
  await once(probe, "close");
  return port;
}
