import { createInterface } from "node:readline/promises";
import type {
  PermissionOptionKind,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import { budgetTool } from "../session/budget.ts";
import { consentTool } from "../session/consent.ts";
import type { Printer } from "./printer.ts";
import { readOnWhenTakenUp } from "./put-aside.ts";
import type { PermissionPolicy, RunOptions } from "./run-options.ts";

interface Asking {
  readonly printer: Printer;
  /** Aborts when the turn no longer waits for the answer. */
  readonly signal: AbortSignal;
  /** Called where the person interrupts instead of answering. */
  onInterrupt(): void;
}

/** Answers a question of the server by the run's policy, or asks the person. */
export async function answerFor(
  request: RequestPermissionRequest,
  { permission }: Pick<RunOptions, "permission">,
  asking: Asking,
): Promise<RequestPermissionResponse> {
  const { printer } = asking;
  printer.question(request);
  const tool = request.toolCall._meta?.["tool_name"];
  const decided = policyFor(tool, permission);
  if (decided === "deny") printer.line(`  rejected: nobody is here to ask (${wayOut(tool)})`);
  const kind = decided === "ask" ? await askOnTerminal(asking) : kinds[decided];
  const option = request.options.find((candidate) => candidate.kind === kind);
  if (option === undefined) return { outcome: { outcome: "cancelled" } };
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

const kinds = { allow: "allow_once", deny: "reject_once" } as const;

/** To allow what rules ask for is neither to trust what somebody else wrote nor to spend more. */
function policyFor(tool: unknown, permission: PermissionPolicy): PermissionPolicy {
  if (permission === "allow" && (tool === consentTool || tool === budgetTool)) return "deny";
  return permission === "ask" && !process.stdin.isTTY ? "deny" : permission;
}

function wayOut(tool: unknown): string {
  if (tool === consentTool) return "--trust would trust it";
  if (tool === budgetTool) return "--max-cost would raise it";
  return "--permission allow would allow it";
}

async function askOnTerminal(asking: Asking): Promise<PermissionOptionKind> {
  const { printer, signal } = asking;
  printer.end();
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const leave = readOnWhenTakenUp(process.stdin);
  // Ctrl-D is an answer too.
  const closed = Promise.withResolvers<string>();
  const onClose = () => {
    process.stderr.write("\n");
    closed.resolve("");
  };
  terminal.once("close", onClose);
  terminal.on("SIGINT", () => {
    terminal.close();
    asking.onInterrupt();
  });
  try {
    const asked = terminal.question("  y = yes, a = always, anything else = no: ", { signal });
    const answer = (await Promise.race([asked, closed.promise])).trim().toLowerCase();
    terminal.off("close", onClose);
    if (answer === "y" || answer === "yes") return "allow_once";
    return answer === "a" || answer === "always" ? "allow_always" : "reject_once";
  } catch {
    // The turn was cancelled meanwhile, or the terminal is gone: nobody said yes.
    return "reject_once";
  } finally {
    terminal.close();
    leave();
  }
}
