import { createInterface } from "node:readline/promises";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { resolve } from "node:path";
import {
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type StopReason,
} from "@agentclientprotocol/sdk";
import { messageOf } from "../base/errors.ts";
import { consentTool } from "../session/consent.ts";
import { type Editor, startEditor } from "./editor.ts";
import { localApp } from "./local-app.ts";
import { Printer } from "./printer.ts";
import { styleFor } from "./style.ts";
import { UsageError } from "./usage.ts";

type PermissionPolicy = "ask" | "allow" | "deny";

interface RunOptions {
  prompt: string;
  cwd: string;
  mode: string | undefined;
  model: string | undefined;
  session: string | undefined;
  goOn: boolean;
  permission: PermissionPolicy;
  trust: boolean;
  format: "text" | "json";
}

/** Does one thing and prints the answer: a client of the same server that editors start. */
export async function run(args: readonly string[]): Promise<number> {
  const options = await parse(args);
  const style = styleFor(process.stderr, process.env);
  const printer = new Printer({
    style,
    answer: (chunk) => process.stdout.write(chunk),
    progress: (chunk) => process.stderr.write(chunk),
  });
  if (options.trust) await (await localApp(options.cwd)).project.consent?.accept();
  let isListening = false;
  const editor = await startEditor({
    env: process.env,
    onUpdate: (update) => {
      if (!isListening) return;
      if (options.format === "json") process.stdout.write(`${JSON.stringify(update)}\n`);
      else printer.update(update);
    },
    onPermission: (request, signal) => decide(options.permission, request, printer, signal),
  });
  try {
    const sessionId = await openSession(editor, options);
    isListening = true;
    const stop = await prompt(editor, sessionId, options.prompt);
    printer.end();
    if (options.format === "json")
      process.stdout.write(`${JSON.stringify({ sessionUpdate: "stop", stopReason: stop, sessionId })}\n`);
    else process.stderr.write(style.dim(`${describeStop(stop)} (session ${sessionId})\n`));
    return exitCodes[stop];
  } catch (error) {
    printer.end();
    process.stderr.write(`fairlead: ${reasonOf(error)}\n`);
    return 1;
  } finally {
    await editor.close();
  }
}

const exitCodes: Readonly<Record<StopReason, number>> = {
  end_turn: 0,
  refusal: 1,
  max_tokens: 3,
  max_turn_requests: 3,
  cancelled: 130,
};

async function parse(args: readonly string[]): Promise<RunOptions> {
  const { values, positionals } = parsed(args);
  const piped = process.stdin.isTTY ? "" : (await text(process.stdin)).trim();
  const prompt = [positionals.join(" "), piped].filter((part) => part !== "").join("\n\n");
  if (prompt === "") throw new UsageError('run needs to be told what to do: fairlead run "…"');
  return {
    prompt,
    cwd: resolve(values.cwd ?? "."),
    mode: values.mode,
    model: values.model,
    session: values.session,
    goOn: values.continue ?? false,
    permission: oneOf("permission", values.permission ?? (process.stdin.isTTY ? "ask" : "deny"), [
      "ask",
      "allow",
      "deny",
    ]),
    trust: values.trust ?? false,
    format: oneOf("format", values.format ?? "text", ["text", "json"]),
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        cwd: { type: "string" },
        mode: { type: "string" },
        model: { type: "string" },
        session: { type: "string" },
        continue: { type: "boolean" },
        permission: { type: "string" },
        trust: { type: "boolean" },
        format: { type: "string" },
      },
    });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

function oneOf<Value extends string>(name: string, value: string, values: readonly Value[]): Value {
  const found = values.find((candidate) => candidate === value);
  if (found === undefined) throw new UsageError(`--${name} takes ${values.join(", ")}, not "${value}"`);
  return found;
}

async function openSession(editor: Editor, options: RunOptions): Promise<string> {
  const { agent } = editor;
  const { cwd } = options;
  const known = options.session ?? (options.goOn ? await newest(editor, cwd) : undefined);
  const sessionId = known ?? (await agent.request("session/new", { cwd, mcpServers: [] })).sessionId;
  if (known !== undefined) await agent.request("session/resume", { sessionId, cwd, mcpServers: [] });
  if (options.mode !== undefined)
    await agent.request("session/set_mode", { sessionId, modeId: options.mode });
  if (options.model !== undefined) {
    await agent.request("session/set_config_option", { sessionId, configId: "model", value: options.model });
  }
  return sessionId;
}

async function newest({ agent }: Editor, cwd: string): Promise<string> {
  const { sessions } = await agent.request("session/list", { cwd });
  const first = sessions[0];
  if (first === undefined) throw new UsageError(`there is no session in ${cwd} to go on with`);
  return first.sessionId;
}

/** The first Ctrl-C cancels the turn, the second one ends the program. */
async function prompt({ agent }: Editor, sessionId: string, text: string): Promise<StopReason> {
  const onInterrupt = () => void agent.notify("session/cancel", { sessionId });
  process.once("SIGINT", onInterrupt);
  try {
    const { stopReason } = await agent.request("session/prompt", {
      sessionId,
      prompt: [{ type: "text", text }],
    });
    return stopReason;
  } finally {
    process.off("SIGINT", onInterrupt);
  }
}

async function decide(
  policy: PermissionPolicy,
  request: RequestPermissionRequest,
  printer: Printer,
  signal: AbortSignal,
): Promise<RequestPermissionResponse> {
  printer.question(request);
  // To allow what rules ask for is not to trust what somebody else wrote.
  const isConsent = request.toolCall._meta?.["tool_name"] === consentTool;
  const decided = isConsent && policy === "allow" ? "deny" : policy;
  const kind =
    decided === "ask"
      ? await askOnTerminal(printer, signal)
      : decided === "allow"
        ? "allow_once"
        : "reject_once";
  if (decided === "deny") {
    const way = isConsent ? "--trust would trust it" : "--permission allow would allow it";
    printer.line(`  rejected: nobody is here to ask (${way})`);
  }
  const option = request.options.find((candidate) => candidate.kind === kind);
  if (option === undefined) return { outcome: { outcome: "cancelled" } };
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

async function askOnTerminal(
  printer: Printer,
  signal: AbortSignal,
): Promise<"allow_once" | "allow_always" | "reject_once"> {
  printer.end();
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = (await terminal.question("  y = yes, a = always, anything else = no: ", { signal }))
      .trim()
      .toLowerCase();
    return answer === "y" || answer === "yes"
      ? "allow_once"
      : answer === "a"
        ? "allow_always"
        : "reject_once";
  } catch {
    return "reject_once";
  } finally {
    terminal.close();
  }
}

function describeStop(stop: StopReason): string {
  switch (stop) {
    case "end_turn":
      return "done";
    case "cancelled":
      return "cancelled";
    case "max_tokens":
      return "stopped: the model's output limit was reached";
    case "max_turn_requests":
      return "stopped: the step limit was reached";
    case "refusal":
      return "the model refused";
  }
}

function reasonOf(error: unknown): string {
  if (
    error instanceof RequestError &&
    typeof error.data === "object" &&
    error.data !== null &&
    "details" in error.data
  ) {
    return String(error.data.details);
  }
  return messageOf(error);
}
