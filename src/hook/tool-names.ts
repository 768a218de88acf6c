import { isAbsolute, resolve } from "node:path";
import { isRecord } from "../base/text/record.ts";
import { type FilePatch, parsePatch } from "../tool/patch/patch.ts";

/** A tool call in the terms of Claude Code. */
export interface HookCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** A tool call in the terms of this program. */
export interface CallToDescribe {
  readonly tool: string;
  /** The MCP server of the tool. */
  readonly server?: string | undefined;
  readonly input: Readonly<Record<string, unknown>>;
  readonly cwd: string;
}

interface KnownName {
  readonly name: string;
  /** Their parameter names by ours; other parameters have the same names. */
  readonly parameters?: Readonly<Record<string, string>>;
}

const file = { filePath: "file_path" };
const texts = { oldString: "old_string", newString: "new_string", replaceAll: "replace_all" };

const knownNames: ReadonlyMap<string, KnownName> = new Map(
  Object.entries<KnownName>({
    bash: { name: "Bash", parameters: { background: "run_in_background" } },
    read: { name: "Read", parameters: file },
    edit: { name: "Edit", parameters: { ...file, ...texts } },
    multiedit: { name: "MultiEdit", parameters: { ...file, ...texts } },
    write: { name: "Write", parameters: file },
    grep: { name: "Grep", parameters: { include: "glob" } },
    glob: { name: "Glob" },
    list: { name: "LS" },
    task: { name: "Task" },
    webfetch: { name: "WebFetch" },
    websearch: { name: "WebSearch" },
    todowrite: { name: "TodoWrite" },
    skill: { name: "Skill" },
    question: { name: "AskUserQuestion" },
  }),
);

/** Describes a call for hooks. A patch is one call of Edit or Write for each of its files. */
export function toHookCalls(call: CallToDescribe): readonly HookCall[] {
  const { tool, server, input, cwd } = call;
  const patch = input["patchText"];
  if (tool === "apply_patch" && typeof patch === "string") return describePatch(patch, cwd);
  if (server !== undefined) return [{ tool: toServerTool(tool, server), input }];
  const known = knownNames.get(tool);
  return [{ tool: known?.name ?? tool, input: translate(input, known?.parameters ?? {}, cwd) }];
}

/** Translates an input that a hook changed; undefined unless it belongs to a single known tool. */
export function fromHookInput(
  { tool, server }: Pick<CallToDescribe, "tool" | "server">,
  input: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | undefined {
  if (server !== undefined) return input;
  if (tool === "apply_patch") return undefined;
  const parameters = Object.entries(knownNames.get(tool)?.parameters ?? {});
  return rename(input, Object.fromEntries(parameters.map(([ours, theirs]) => [theirs, ours])));
}

/** Names of MCP tools begin with the server's name. */
function toServerTool(tool: string, server: string): string {
  const prefix = `${server}_`;
  return `mcp__${server}__${tool.startsWith(prefix) ? tool.slice(prefix.length) : tool}`;
}

function translate(
  input: Readonly<Record<string, unknown>>,
  parameters: Readonly<Record<string, string>>,
  cwd: string,
): Record<string, unknown> {
  const renamed = rename(input, parameters);
  const path = renamed["file_path"];
  return typeof path === "string" ? { ...renamed, file_path: toAbsolute(path, cwd) } : renamed;
}

function rename(
  input: Readonly<Record<string, unknown>>,
  names: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(input).map(([key, value]) => [
      Object.hasOwn(names, key) ? (names[key] ?? key) : key,
      Array.isArray(value) ? value.map((item) => (isRecord(item) ? rename(item, names) : item)) : value,
    ]),
  );
}

const toAbsolute = (path: string, cwd: string): string =>
  isAbsolute(path) || path.startsWith("~") ? path : resolve(cwd, path);

/** An invalid patch has no calls: the tool refuses it. */
function describePatch(text: string, cwd: string): readonly HookCall[] {
  try {
    return parsePatch(text).map((patch) => describeFile(patch, cwd));
  } catch {
    return [];
  }
}

function describeFile(patch: FilePatch, cwd: string): HookCall {
  const file_path = toAbsolute(patch.path, cwd);
  if (patch.kind === "add") return { tool: "Write", input: { file_path, content: patch.text } };
  if (patch.kind === "delete") return { tool: "Edit", input: { file_path, old_string: "", new_string: "" } };
  const lines = [patch.hunks, ...(patch.later ?? [])].flat().flatMap((hunk) => hunk.lines);
  const join = (omitted: string) =>
    lines
      .filter(({ kind }) => kind !== omitted)
      .map((line) => line.text)
      .join("\n");
  return { tool: "Edit", input: { file_path, old_string: join("insert"), new_string: join("remove") } };
}
