import { Wire } from "../acp/transport/wire.ts";
import type { RunningServer } from "./acp-server.ts";
import { exitNow } from "./exit.ts";
import { createLibraryConsole } from "./console-to-stderr.ts";
import { version } from "./command-line/version.ts";

/** Time limit of a shutdown: usually a few milliseconds, longer on a busy machine. */
const shutdownLimitMs = 1_000;
/** Time limit of a shutdown after a signal: clients kill about 100 ms later. */
const signalLimitMs = 80;

/** Serves one ACP client on stdin and stdout until it disconnects. */
export async function serveEditor(args: readonly string[]): Promise<void> {
  const output = process.stdout;
  redirectStdout();
  const program = { version, launch: [process.execPath, ...process.argv.slice(1, 2)] };
  const wire = new Wire({ input: process.stdin, output, program });
  const verbose = args.includes("--verbose");
  const ignored = args.filter((arg) => arg !== "--verbose");
  if (ignored.length > 0)
    process.stderr.write(`fairlead acp takes --verbose only; ignored: ${ignored.join(" ")}\n`);
  if (process.stdin.isTTY)
    process.stderr.write(
      "Editors start this, without a terminal (ssh -T, docker exec -i). To work in a terminal, use: fairlead run\n",
    );
  // Loading blocks this thread, so it starts after the first answer.
  await wire.started;
  const { openServer } = await import("./acp-server.ts");
  const server = await openServer({ wire, program, env: process.env, platform: process.platform, verbose });
  const { promise: ending, resolve: end } = Promise.withResolvers<Ending>();
  const hurry = Promise.withResolvers<void>();
  const endBy = (signal: NodeJS.Signals) => {
    end({ code: 0, reason: `The program was ended by ${signal}.` });
    setTimeout(hurry.resolve, signalLimitMs);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, endBy);
  // The terminal or connection of the client is gone.
  process.on("SIGHUP", (signal) => {
    server.hangUp().then(
      (goesOn) => goesOn || endBy(signal),
      () => endBy(signal),
    );
  });
  process.on("uncaughtException", (error) => end(reportCrash(server, error)));
  process.on("unhandledRejection", (error) => server.logError("unhandled rejection", error));
  void server.closed.then(() => end({ code: 0, reason: "The program ended because its input ended." }));
  await shutDown(server, await ending, hurry.promise);
}

/** Redirects all printing to stderr: stdout carries the protocol only. */
function redirectStdout(): void {
  // A closed stderr must not end the program.
  process.stderr.on("error", () => {});
  Object.defineProperty(process, "stdout", { value: process.stderr });
  globalThis.console = createLibraryConsole(process.stderr);
}

/** Exit code, and the reason sent as the answer to open requests. */
interface Ending {
  code: number;
  reason: string;
}

function reportCrash(server: RunningServer, error: Error): Ending {
  server.logError("uncaught exception", error);
  process.stderr.write(`fairlead: ${error.message}\n`);
  return { code: 1, reason: `The program ended for an unexpected error: ${error.message}` };
}

async function shutDown(
  server: RunningServer,
  { code, reason }: Ending,
  hurry: Promise<void>,
): Promise<void> {
  const closed = server.close().catch((error: unknown) => server.logError("shutdown failed", error));
  const limit = new Promise((resolve) => setTimeout(resolve, shutdownLimitMs));
  await Promise.race([closed, limit, hurry]);
  await server.abandon(reason).catch((error: unknown) => server.logError("final answers not sent", error));
  exitNow(code);
}
