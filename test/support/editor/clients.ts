import { readFile as readDisk, writeFile as writeDisk } from "node:fs/promises";
import {
  methods,
  RequestError,
  type ClientApp,
  type ClientCapabilities,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  type Implementation,
} from "@agentclientprotocol/sdk";
import { z } from "zod";
import { codeOf } from "../../../src/base/errors.ts";

/** The capabilities of an editor, and its answers. */
export interface ClientKind {
  info: Implementation;
  capabilities: ClientCapabilities;
  /** Unsaved buffers by absolute path; files without a buffer come from disk. */
  buffers?: Map<string, string>;
  /** Replaces the handlers that read and write files, for editors that break their promises. */
  readFile?: (path: string) => Promise<unknown>;
  writeFile?: (path: string, content: string) => Promise<unknown>;
  elicit?: Elicit;
}

export type Elicit = (
  request: CreateElicitationRequest,
) => CreateElicitationResponse | Promise<CreateElicitationResponse>;

const info: Implementation = { name: "test-editor", title: "Test editor", version: "1.0.0" };

/** An editor with the required capabilities only. */
export const plain = (): ClientKind => ({ info, capabilities: {} });

/** An editor whose files are read and written through it. */
export const withFs = (buffers = new Map<string, string>()): ClientKind => ({
  info,
  capabilities: { fs: { readTextFile: true, writeTextFile: true } },
  buffers,
});

/** An editor that shows forms; it declines them by default. */
export const withElicitation = (elicit: Elicit = () => ({ action: "decline" })): ClientKind => ({
  info,
  capabilities: { elicitation: { form: {} } },
  elicit,
});

/** Zed's capabilities. Its terminals are for display through `_meta`; calls of `terminal/*` are rejected. */
export const zedLike = (
  buffers = new Map<string, string>(),
  elicit: Elicit = () => ({ action: "decline" }),
): ClientKind => ({
  info: { name: "zed", title: "Zed", version: "1.0.0" },
  capabilities: {
    fs: { readTextFile: true, writeTextFile: true },
    terminal: true,
    auth: { terminal: true },
    elicitation: { form: {}, url: {} },
    session: { configOptions: { boolean: {} } },
    _meta: { terminal_output: true, "terminal-auth": true },
  },
  buffers,
  elicit,
});

/** Adds the handlers of a kind of client. */
export function serve(app: ClientApp, { buffers, elicit, readFile, writeFile }: ClientKind): void {
  if (elicit) app.onRequest(methods.client.elicitation.create, ({ params }) => elicit(params));
  if (!buffers) return;
  const { readTextFile, writeTextFile } = methods.client.fs;
  const [readAny, writeAny]: [string, string] = [readTextFile, writeTextFile];
  if (readFile) app.onRequest(readAny, fileParams, ({ params }) => readFile(params.path));
  else {
    app.onRequest(readTextFile, async ({ params }) => {
      const text = buffers.get(params.path) ?? (await readFromDisk(params.path));
      const first = (params.line ?? 1) - 1;
      const wanted =
        params.line || params.limit
          ? selectLines(text).slice(first, first + (params.limit ?? Infinity))
          : [text];
      return { content: wanted.join("") };
    });
  }
  if (writeFile) {
    app.onRequest(writeAny, fileParams, ({ params }) => writeFile(params.path, params.content));
  } else {
    app.onRequest(writeTextFile, async ({ params }) => {
      buffers.set(params.path, params.content);
      await writeDisk(params.path, params.content);
      return {};
    });
  }
}

/** A handler with its own parser may return any answer. */
const fileParams = (params: unknown) =>
  z.object({ path: z.string(), content: z.string().default("") }).parse(params);

/** The lines with their line ends. */
const selectLines = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

async function readFromDisk(path: string): Promise<string> {
  try {
    return await readDisk(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") throw RequestError.resourceNotFound(path);
    throw error;
  }
}
