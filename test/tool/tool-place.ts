import type { Jobs } from "../../src/tool/job/jobs.ts";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { toSlashes } from "../../src/base/files/paths.ts";
import { newSessionId } from "../../src/message/ids.ts";
import type { Todo } from "../../src/message/message.ts";
import { type Tool, type ToolContext, type ToolResult, appendNotes } from "../../src/tool/tool.ts";
import { openFiles } from "../../src/workspace/files/disk-files.ts";
import type { Files as WorkspaceFiles } from "../../src/workspace/files/files.ts";
import { SeenFiles } from "../../src/tool/seen-files.ts";
import type { Processes } from "../../src/workspace/process/process.ts";
import type { Search } from "../../src/workspace/search/queries.ts";
import { openChangeTracker } from "../../src/workspace/changes/change-tracker.ts";
import { openSnapshots } from "../../src/workspace/files/snapshot.ts";
import type { AuthorChanges } from "../../src/workspace/recent/recent-changes.ts";
import { temporaryFolder } from "../support/temp.ts";
import type { Files } from "../support/temp.ts";

/** A working directory `work` in a new folder, and a session that calls file tools in it. */
export interface ToolPlace extends AsyncDisposable {
  /** Contains `work` and the files outside it. */
  readonly outside: string;
  readonly cwd: string;
  readonly context: ToolContext;
  path(name: string): string;
  /** The path as rules and permissions write it, with `/`. */
  rulePath(name: string): string;
  bytes(name: string): Promise<Buffer>;
  text(name: string): Promise<string>;
  write(files: Files): Promise<void>;
}

export async function toolPlace(files: Files = {}): Promise<ToolPlace> {
  const folder = await temporaryFolder();
  const cwd = join(folder.path, "work");
  await mkdir(cwd);
  const path = (name: string) => join(cwd, name);
  const place: ToolPlace = {
    outside: folder.path,
    cwd,
    context: toolContext(folder.path, cwd),
    path,
    rulePath: (name) => toSlashes(path(name)),
    bytes: (name) => readFile(path(name)),
    text: (name) => readFile(path(name), "utf8"),
    write: (more) =>
      folder.write(Object.fromEntries(Object.entries(more).map(([name, text]) => [`work/${name}`, text]))),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
  await place.write(files);
  return place;
}

/** A place whose files go through an editor that converts text to upper case. */
export function shouting(place: ToolPlace): ToolPlace {
  const { files } = place.context.workspace;
  const write: WorkspaceFiles["write"] = async (path, bytes, expected, mode) => {
    const loud = Buffer.from(String(bytes).toUpperCase());
    const { hash } = await files.write(path, loud, expected, mode);
    return { hash, bytes: loud };
  };
  const loud: WorkspaceFiles = {
    read: (path) => files.read(path),
    remove: (path, expected) => files.remove(path, expected),
    lock: (paths, task) => files.lock(paths, task),
    write,
  };
  const workspace = { ...place.context.workspace, files: loud };
  return { ...place, context: { ...place.context, workspace } };
}

/**
 * Parses, prepares and runs a call like the runner once it is permitted, and appends its notes to the output.
 */
export async function call(tool: Tool, input: unknown, { context }: ToolPlace): Promise<Completed> {
  const prepared = await tool.prepare(tool.input.parse(input), context);
  return completed(
    await prepared.run({
      callId: "call",
      signal: context.signal,
      isAllowed: () => true,
      output: () => {},
      waitUntilReady: async () => {},
      limits: { folder: context.workspace.outputFolder },
    }),
  );
}

export function prepare(tool: Tool, input: unknown, { context }: ToolPlace) {
  return tool.prepare(tool.input.parse(input), context);
}

/** The description of a prepared call. */
export async function description(tool: Tool, input: unknown, place: ToolPlace) {
  const { title, locations, preview, permissions } = await prepare(tool, input, place);
  return { title, kind: tool.kind, locations, ...(preview && { preview }), permissions };
}

export function run(
  prepared: Awaited<ReturnType<typeof prepare>>,
  { context }: ToolPlace,
): Promise<ToolResult> {
  return prepared.run({
    callId: "call",
    signal: context.signal,
    isAllowed: () => true,
    output: () => {},
    waitUntilReady: async () => {},
    limits: { folder: context.workspace.outputFolder },
  });
}

type Completed = ToolResult & { status: "completed" };

function completed(result: ToolResult): Completed {
  if (result.status === "completed") {
    const { notes, ...rest } = result;
    return { ...rest, output: appendNotes(rest.output, notes) };
  }
  throw new Error(`the call failed: ${result.error}`);
}

/** The context of calls in the working directory, with everything else below `folder`. */
export function toolContext(folder: string, cwd: string): ToolContext {
  let todos: readonly Todo[] = [];
  return {
    sessionId: newSessionId(),
    agent: "build",
    workspace: {
      cwd,
      roots: [cwd],
      worktree: undefined,
      home: join(folder, "home"),
      outputFolder: join(folder, "outputs"),
      files: openFiles(),
      processes: {
        run: unused,
        findShell: async () => "bash",
        warmUp: unused,
        endAll: unused,
        killAll: unused,
      } satisfies Processes,
      search: {
        files: async () => ({ paths: [], truncated: false }),
        lines: unused,
        warmUp: unused,
      } satisfies Search,
      snapshots: openSnapshots(join(folder, "snapshots")),
      changeTracker: openChangeTracker(() => process.env, [join(cwd, ".local/share/fairlead")]),
    },
    seen: new SeenFiles(),
    recent: noRecentChanges,
    instructed: new Set<string>(),
    todos: {
      read: () => todos,
      write: async (list) => {
        todos = list;
      },
    },
    inquire: async () => ({ outcome: "unavailable" }),
    agents: { names: ["build", "plan"], asksForEdits: () => false, switchTo: async () => {} },

    tasks: { agents: [], isRequested: () => false, start: unused },
    jobs: noJobs,
    signal: new AbortController().signal,
  };
}

const unused = (): never => {
  throw new Error("file tools use no processes and no search");
};

/** Job service of a session that allows no jobs. */
export const noJobs: Jobs = {
  all: [],
  foregroundSeconds: 120,
  findRefusal: () => "No jobs are allowed.",
  start: () => {
    throw new Error("no jobs are allowed");
  },
};

/** No other session changes files. */
export const noRecentChanges: AuthorChanges = {
  note: async () => {},
  list: async () => [],
  find: async () => undefined,
  takeNews: async () => [],
};
