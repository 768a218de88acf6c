import { messageOf } from "../base/errors.ts";
import { usage, UsageError } from "./usage.ts";
import { version } from "./version.ts";

/** Runs a command of the command line and answers its exit code. */
export async function runCommand(command: string, args: readonly string[]): Promise<number> {
  try {
    return await dispatch(command, args);
  } catch (error) {
    process.stderr.write(`fairlead: ${messageOf(error)}\n`);
    if (!(error instanceof UsageError)) return 1;
    process.stderr.write("Try fairlead --help.\n");
    return 2;
  }
}

async function dispatch(command: string, args: readonly string[]): Promise<number> {
  switch (command) {
    case "run":
      return (await import("./run.ts")).run(args);
    case "demo":
      return (await import("./demo.ts")).demo();
    case "doctor":
      return (await import("./doctor.ts")).doctor();
    case "permissions":
      return (await import("./permissions.ts")).permissions(args);
    case "trust":
      return (await import("./trust.ts")).trust(args);
    case "mcp":
      return (await import("./mcp.ts")).mcp(args);
    case "models":
      return (await import("./models.ts")).models(args);
    case "help":
    case "--help":
    case "-h":
      process.stdout.write(usage);
      return 0;
    case "--version":
    case "-v":
      process.stdout.write(`${version}\n`);
      return 0;
    default:
      throw new UsageError(`there is no command "${command}"`);
  }
}
