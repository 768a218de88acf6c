import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import {
  client,
  type ClientContext,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  ndJsonStream,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { orAfter } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import { version } from "../command-line/version.ts";

export interface EditorOptions {
  /** The server's environment. */
  env: Readonly<Record<string, string | undefined>>;
  /** Whether to log everything, also to stderr. */
  isVerbose?: boolean;
  onUpdate(update: SessionUpdate, sessionId: string): void;
  /** Aborts when the turn no longer waits for the answer. */
  onPermission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse>;
  /** Answers forms; without it the server asks with permission requests. */
  readonly onForm?: (
    request: CreateElicitationRequest,
    signal: AbortSignal,
  ) => Promise<CreateElicitationResponse>;
  /** Whether no user answers permission requests. */
  isUnattended?: boolean;
  /** Whether the server may continue without this process, which then must not share its stderr. */
  isDetached?: boolean;
  /** Whether a program reads the output. */
  isScripted?: boolean;
  /** Whether updates of commands carry their output while they run. */
  hasTerminals?: boolean;
}

/** An ACP client connected to a server in a child process, started as editors start it. */
export interface Editor {
  readonly agent: ClientContext;
  /** The server's process id. */
  readonly pid: number | undefined;
  /** Closes the session, if one is given, then the server. */
  close(sessionId?: string): Promise<void>;
  /** Disconnects without waiting for the server, which may continue with its turn. */
  leave(): void;
}

/** Time for the server to exit before it is killed. */
const exitTimeoutMs = 5_000;
/** Time for the server to close a session: removing a large worktree takes longer than an exit may. */
const closeTimeoutMs = 30_000;

export async function startEditor(options: EditorOptions): Promise<Editor> {
  const program = fileURLToPath(new URL("../bin/fairlead.js", import.meta.url));
  const child = spawn(process.execPath, [program, "acp", ...(options.isVerbose ? ["--verbose"] : [])], {
    stdio: ["pipe", "pipe", options.isDetached === true ? "ignore" : "inherit"],
    env: options.env,
    // Its own process group: Ctrl-C must reach this process only, which decides what to do.
    detached: process.platform !== "win32",
  });
  const ended = new Promise<void>((resolve) => {
    child.on("exit", () => resolve());
    child.on("error", () => resolve());
  });
  const { onForm } = options;
  const app = client({ name: "fairlead" })
    .onNotification("session/update", ({ params }) => options.onUpdate(params.update, params.sessionId))
    .onRequest("session/request_permission", ({ params, signal }) => options.onPermission(params, signal));
  if (onForm !== undefined)
    app.onRequest("elicitation/create", ({ params, signal }) => onForm(params, signal));
  const connection = app.connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  await connection.agent.request("initialize", {
    protocolVersion: 1,
    clientInfo: { name: "fairlead-cli", version },
    clientCapabilities: {
      ...(onForm !== undefined && { elicitation: { form: {} } }),
      _meta: {
        decisions: true,
        duplicate_option_kinds: true,
        feedback: true,
        ...(options.isUnattended === true && { unattended: true }),
        ...(options.isScripted === true && { scripted: true }),
        ...(options.hasTerminals === true && { terminal_output: true }),
      },
    },
  });
  return {
    agent: connection.agent,
    pid: child.pid,
    close: async (sessionId) => {
      if (sessionId !== undefined) {
        const closed = connection.agent.request("session/close", { sessionId }).catch(() => {});
        await orAfter(Promise.race([closed, ended]), closeTimeoutMs, undefined);
      }
      child.stdin.end();
      const kill = setTimeout(() => child.kill("SIGKILL"), exitTimeoutMs);
      await ended;
      clearTimeout(kill);
    },
    leave: () => {
      child.stdin.destroy();
      child.stdout.destroy();
      child.unref();
    },
  };
}

/** Returns the reason of a failed request as text for the user. */
export function getErrorReason(error: unknown): string {
  const data = error instanceof RequestError ? error.data : undefined;
  const isDetailed = typeof data === "object" && data !== null && "details" in data;
  const reason = isDetailed ? String(data.details) : messageOf(error);
  return reason.replace(clientPrefix, "");
}

/** Prefix for clients, removed from texts for the user. */
const clientPrefix = /^Authentication required: /;
