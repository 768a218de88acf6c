import { closeSync, openSync } from "node:fs";
import { Server } from "node:net";
import { z } from "zod";
import { deferred, orAfter } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import { childProcess } from "../../workspace/process/child-process.ts";
import { type Environment, findProgram } from "../../workspace/process/find-program.ts";

/** Time for the helper to start; a system under load needs more than a moment. */
const helperTimeoutMs = 10_000;

/** A network namespace without a way out, which lives as long as this process. */
export interface SharedNamespace {
  /** Words before a command that make it run in the namespace. */
  readonly enter: readonly string[];
  /** Listens on loopback in the namespace. */
  readonly server: Server;
  readonly port: number;
  close(): void;
}

/** Runs in the namespace: listens, and hands the socket to this process. Without modules, as it may be anywhere. */
const helper = `
const server = require("node:net").createServer();
server.listen(0, "127.0.0.1", () => process.send({ pid: process.pid, port: server.address().port }, server));
process.on("message", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
`;

const started = z.object({ pid: z.number(), port: z.number() });

/**
 * Creates a namespace with the help of `bwrap`. No process stays in it: open files hold the namespace, and the socket
 * accepts connections from inside. Returns the problem if the system does not allow it.
 */
export async function openSharedNamespace(
  bwrap: string,
  env: Environment,
): Promise<SharedNamespace | string> {
  const nsenter = await findProgram("nsenter", env);
  if (nsenter === undefined)
    return "nsenter is not on the PATH. Install the package util-linux, for example with: sudo apt install util-linux, sudo dnf install util-linux, or apk add util-linux.";
  const words = [
    "--unshare-user",
    "--unshare-net",
    "--ro-bind",
    "/",
    "/",
    "--",
    process.execPath,
    "-e",
    helper,
  ];
  const child = childProcess().spawn(bwrap, words, {
    env: {},
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  const message = deferred<{ content: unknown; handle: unknown } | string>();
  child.once("message", (content, handle) => message.resolve({ content, handle }));
  child.once("error", (error) => message.resolve(messageOf(error)));
  child.once("exit", (code) => message.resolve(`its first process ended with code ${code ?? "none"}`));
  const answer = await orAfter(message.promise, helperTimeoutMs, "its first process did not answer in time");
  try {
    if (typeof answer === "string") return answer;
    const { pid, port } = started.parse(answer.content);
    if (!(answer.handle instanceof Server)) return "its first process did not send a socket";
    return { ...openFiles(nsenter, pid), server: answer.handle, port };
  } catch (error) {
    return messageOf(error);
  } finally {
    if (child.connected) child.disconnect();
    else child.kill("SIGKILL");
  }
}

/** Holds the namespaces of a process by open files. */
function openFiles(nsenter: string, pid: number): Pick<SharedNamespace, "enter" | "close"> {
  const network = openSync(`/proc/${pid}/ns/net`, "r");
  const users = openSync(`/proc/${pid}/ns/user`, "r");
  const path = (file: number) => `/proc/${process.pid}/fd/${file}`;
  return {
    enter: [nsenter, `--user=${path(users)}`, `--net=${path(network)}`, "--preserve-credentials", "--"],
    close: () => {
      closeSync(network);
      closeSync(users);
    },
  };
}
