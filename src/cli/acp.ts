import { Console } from "node:console";
import { Wire } from "../acp/wire.ts";
import { version } from "./version.ts";

/** How long ending may take once the client is gone; clients kill after about 100 ms. */
const endLimitMs = 80;

/** Serves one ACP client on stdin and stdout until it goes away. */
export async function serveEditor(args: readonly string[]): Promise<void> {
  const output = process.stdout;
  keepStdoutClean();
  const wire = new Wire({ input: process.stdin, output, version });
  if (args.length > 0) process.stderr.write(`fairlead acp takes no arguments; ignored: ${args.join(" ")}\n`);
  // Loading blocks this thread: it waits until the first answer is out.
  await wire.begun;
  const { openServer } = await import("./acp-server.ts");
  const server = await openServer({ wire, version, env: process.env, platform: process.platform });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => void end(server, 0));
  process.on("uncaughtException", (error) => void end(server, 1, error));
  process.on("unhandledRejection", (error) => server.report("an unexpected error", error));
  await server.closed;
  await end(server, 0);
}

/** Whatever prints goes to stderr: stdout carries the protocol only. */
function keepStdoutClean(): void {
  Object.defineProperty(process, "stdout", { value: process.stderr });
  globalThis.console = new Console(process.stderr, process.stderr);
}

let ending = false;

async function end(
  server: { close(): Promise<void>; report(what: string, error: unknown): void },
  code: number,
  error?: unknown,
): Promise<void> {
  if (ending) return;
  ending = true;
  if (error !== undefined) {
    server.report("the program ends for an unexpected error", error);
    process.stderr.write(`fairlead: ${error instanceof Error ? error.message : String(error)}\n`);
  }
  const limit = new Promise((resolve) => setTimeout(resolve, endLimitMs));
  await Promise.race([server.close(), limit]);
  process.exit(code);
}
