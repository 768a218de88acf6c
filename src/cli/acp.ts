import { Wire } from "../acp/transport/wire.ts";
import type { RunningServer } from "./acp-server.ts";
import { exitNow } from "./exit.ts";
import { libraryConsole } from "./console-to-stderr.ts";
import { version } from "./command-line/version.ts";

/** How long ending may take once the input has ended: a busy machine needs longer than the usual few milliseconds. */
const endLimitMs = 1_000;
/** The same behind a signal: clients kill about 100 ms later. */
const signalLimitMs = 80;

/** Serves one ACP client on stdin and stdout until it goes away. */
export async function serveEditor(args: readonly string[]): Promise<void> {
  const output = process.stdout;
  keepStdoutClean();
  const program = { version, launch: [process.execPath, ...process.argv.slice(1, 2)] };
  const wire = new Wire({ input: process.stdin, output, program });
  const verbose = args.includes("--verbose");
  const ignored = args.filter((arg) => arg !== "--verbose");
  if (ignored.length > 0)
    process.stderr.write(`fairlead acp takes --verbose only; ignored: ${ignored.join(" ")}\n`);
  if (process.stdin.isTTY)
    process.stderr.write("Editors start this. To work in a terminal, use: fairlead run\n");
  // Loading blocks this thread: it waits until the first answer is out.
  await wire.started;
  const { openServer } = await import("./acp-server.ts");
  const server = await openServer({ wire, program, env: process.env, platform: process.platform, verbose });
  const { promise: over, resolve: end } = Promise.withResolvers<Ending>();
  const hurry = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      end({ code: 0, reason: `The program was ended by ${signal}.` });
      setTimeout(hurry.resolve, signalLimitMs);
    });
  process.on("uncaughtException", (error) => end(brokenBy(server, error)));
  process.on("unhandledRejection", (error) => server.report("an unexpected error", error));
  void server.closed.then(() => end({ code: 0, reason: "The program ended because its input did." }));
  await leave(server, await over, hurry.promise);
}

/** Whatever prints goes to stderr: stdout carries the protocol only. */
function keepStdoutClean(): void {
  // A client that does not listen there loses what is said there, and nothing else.
  process.stderr.on("error", () => {});
  Object.defineProperty(process, "stdout", { value: process.stderr });
  globalThis.console = libraryConsole(process.stderr);
}

/** Why the program ends, in words for whoever still waits for an answer. */
interface Ending {
  code: number;
  reason: string;
}

function brokenBy(server: RunningServer, error: Error): Ending {
  server.report("the program ends for an unexpected error", error);
  process.stderr.write(`fairlead: ${error.message}\n`);
  return { code: 1, reason: `The program ended for an unexpected error: ${error.message}` };
}

async function leave(server: RunningServer, { code, reason }: Ending, hurry: Promise<void>): Promise<void> {
  const closed = server.close().catch((error: unknown) => server.report("the end was not clean", error));
  const limit = new Promise((resolve) => setTimeout(resolve, endLimitMs));
  await Promise.race([closed, limit, hurry]);
  await server.abandon(reason).catch((error: unknown) => server.report("the last words were lost", error));
  exitNow(code);
}
