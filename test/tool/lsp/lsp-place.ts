import { noSandbox } from "./no-sandbox.ts";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { z } from "zod";
import { silentLog } from "../../../src/base/log.ts";
import { requestLimits } from "../../../src/lsp/language-server.ts";
import { LanguageQueries } from "../../../src/lsp/language-queries.ts";
import { LanguageServers } from "../../../src/lsp/language-servers.ts";
import { lspTool } from "../../../src/tool/lsp/lsp.ts";
import { renameSymbolTool } from "../../../src/tool/lsp/rename-symbol.ts";
import { openPipedProcesses } from "../../../src/workspace/process/piped-process.ts";
import { Watchdog } from "../../../src/workspace/process/watchdog.ts";
import type { Files } from "../../support/temp.ts";
import { call, toolPlace, type ToolPlace } from "../tool-place.ts";

const program = fileURLToPath(new URL("../../support/program/scripted-server-program.ts", import.meta.url));

/** The scripted server's capabilities and responses; see its program. */
export interface ServerScript {
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly answers?: Readonly<Record<string, readonly unknown[]>>;
  readonly sends?: Readonly<Record<string, readonly unknown[]>>;
  readonly initializeMs?: number;
}

/** Announces all capabilities that the tools use. */
export const allProviders = {
  definitionProvider: true,
  implementationProvider: {},
  referencesProvider: true,
  hoverProvider: true,
  documentSymbolProvider: true,
  workspaceSymbolProvider: true,
  callHierarchyProvider: true,
  renameProvider: true,
};

const messageSchema = z.looseObject({ method: z.string().optional(), params: z.unknown().optional() });

export interface LspPlace extends ToolPlace {
  /** Calls `lsp`; resolves with its text, or the message of its failure. */
  ask(input: Readonly<Record<string, unknown>>): Promise<string>;
  readonly queries: LanguageQueries;
  uri(name: string): string;
  /** The parameters of the messages that the server received with this method. */
  received(method: string): Promise<unknown[]>;
}

/** A folder whose `.txt` files are served by a server with this script. Requests have a short timeout. */
export async function lspPlace(
  files: Files,
  { capabilities = allProviders, ...script }: ServerScript,
  limits: Partial<typeof requestLimits> = {},
): Promise<LspPlace> {
  const place = await toolPlace(files);
  const scriptFile = join(place.outside, "script.json");
  const record = join(place.outside, "record.jsonl");
  await writeFile(scriptFile, JSON.stringify({ capabilities, ...script }));
  const processes = openPipedProcesses({
    env: () => process.env,
    watchdog: new Watchdog(process.env["PATH"]),
  });
  const servers = new LanguageServers({
    processes,
    snapshots: place.context.workspace.snapshots,
    read: async (path) => (await place.context.workspace.files.read(path)).bytes,
    log: silentLog,
    warn: () => {},
    waits: {
      firstMs: 10_000,
      laterMs: 10_000,
      quietMs: { first: 100, least: 100, most: 100 },
      requestLimits: { ...requestLimits, beginMs: 1, ...limits },
    },
  });
  const config = { command: [process.execPath, program, scriptFile, record], extensions: [".txt"] };
  const folders = { servers: { test: config }, root: place.cwd, cwd: place.cwd, confine: noSandbox };
  const sample = Object.keys(files).find((name) => name.endsWith(".txt"));
  const choices = [{ name: "test", config, sample: sample && place.path(sample) }];
  const queries = new LanguageQueries({ folders, choices, servers: async () => servers });
  const tool = lspTool(queries);
  return {
    ...place,
    queries,
    ask: (input) =>
      call(tool, input, place).then(
        ({ output }) => output,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      ),
    uri: (name) => pathToFileURL(place.path(name)).href,
    received: async (method) =>
      (await readFile(record, "utf8"))
        .trim()
        .split("\n")
        .map((line) => messageSchema.parse(JSON.parse(line)))
        .filter((message) => message.method === method)
        .map(({ params }) => params),
    [Symbol.asyncDispose]: async () => {
      await processes.endAll();
      await place[Symbol.asyncDispose]();
    },
  };
}

export const renameTool = ({ queries }: LspPlace) => renameSymbolTool(queries);

/** A range within one line; both count from 0. */
export function range(line: number, first: number, end = first) {
  return { start: { line, character: first }, end: { line, character: end } };
}
