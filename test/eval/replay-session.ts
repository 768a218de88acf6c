import { createTwoFilesPatch } from "diff";
import { Editor } from "../support/editor/editor.ts";
import { toList, toObject } from "../support/json.ts";
import {
  type ModelRequest,
  type ModelServer,
  type Reply,
  startModelServer,
} from "../support/model/model-server.ts";
import * as reply from "../support/model/reply.ts";
import { isSummaryRequest } from "../support/model/small-window.ts";
import { useSlashes, withSlashes } from "../support/platform/path-spelling.ts";
import { fairlead } from "../support/program/cli.ts";
import { type Files, gitRepository, type ModelLimit, temporaryFolder, writeConfig } from "../support/temp.ts";
import { type SessionFile, sessionFileSchema } from "../../src/reports/session-file.ts";
import type { Message } from "../../src/message/message.ts";
import type { Part, ToolPart } from "../../src/message/part.ts";

/** The environment of a session: its folder at the start, and the configuration. */
export interface Setting {
  readonly files?: Files;
  readonly homeFiles?: Files;
  readonly config?: Record<string, unknown>;
  readonly limit?: ModelLimit;
  /** Resolves when the session can begin, for example when its servers are connected. */
  readonly ready?: (editor: Editor, sessionId: string) => Promise<unknown>;
}

export interface ReplayOptions extends Setting {
  /** Tools that are refused in the replay; their calls are not compared. */
  readonly refused?: readonly string[];
}

/**
 * Sends the recorded answers of the model to the current program in a fresh folder, with the recorded
 * decisions of the user. Returns differences of results and endings as a unified diff; empty if there are
 * none.
 */
export async function replaySession(recorded: SessionFile, options: ReplayOptions = {}): Promise<string> {
  await using repository = await gitRepository(options.files ?? {});
  await using home = await temporaryFolder(options.homeFiles, "fairlead-home-");
  const model = await startModelServer();
  await writeConfig(home.path, model.url, options.config, options.limit);
  const moved = movePaths(recorded, repository.path);
  const answers = toList(findParts(moved).map((part) => part.decision)).map(toObject);
  const decisions = answers.filter(({ by }) => by === "person").map(({ outcome }) => outcome === "allowed");
  const permission = () => (decisions.shift() === false ? "reject_once" : "allow_once");
  const editor = new Editor({ home: home.path, cwd: repository.path, permission });
  try {
    await editor.initialize();
    const { sessionId } = await editor.newSession();
    await options.ready?.(editor, sessionId);
    scriptModel(model, moved);
    for (const prompt of listPrompts(moved)) {
      if (prompt.agent !== undefined) await editor.setMode(sessionId, prompt.agent);
      await editor.prompt(sessionId, prompt.text).catch(() => "The turn failed, as its messages say.");
    }
    const exported = await exportSession(home.path, repository.path, sessionId);
    const [before, after] = [moved, exported].map((file) => describeSession(file, options.refused ?? []));
    if (before === after) return "";
    return createTwoFilesPatch("recorded", "replayed", before ?? "", after ?? "", undefined, undefined, {
      context: 4,
    });
  } finally {
    await editor.close();
    await model.close();
  }
}

/** Returns the current program's export of a session. */
export async function exportSession(home: string, cwd: string, sessionId: string): Promise<SessionFile> {
  const { stdout, stderr } = await fairlead(home, ["sessions", "export", sessionId, "--format", "json"], {
    cwd,
  });
  if (stdout === "") throw new Error(`The session cannot be exported: ${stderr}`);
  return parseSession(stdout);
}

export const parseSession = (text: string): SessionFile => sessionFileSchema.parse(JSON.parse(text));

/** Replaces the recorded folder by another one, with `/` in its paths. */
export function movePaths(recorded: SessionFile, cwd: string): SessionFile {
  const from = recorded.info.cwd;
  const text = useSlashes(JSON.stringify(recorded), [from]);
  return parseSession(text.replaceAll(withSlashes(from), withSlashes(cwd)));
}

interface Prompt {
  readonly text: string;
  /** Set if the prompt uses another agent than the previous one. */
  readonly agent?: string;
}

/** Lists the user's input: messages, and the command for a compaction. */
function listPrompts({ messages }: SessionFile): Prompt[] {
  const prompts: Prompt[] = [];
  let agent = "build";
  for (const { info, parts } of messages) {
    if (info.role !== "user") continue;
    const text = joinText(parts);
    const compaction = parts.find((part) => part.type === "compaction");
    const written = compaction?.type === "compaction" && !compaction.auto ? "/compact" : text;
    if (written === "" || info.steering === true) continue;
    prompts.push({ text: written, ...(info.agent !== agent && { agent: info.agent }) });
    agent = info.agent;
  }
  return prompts;
}

/** The text that the user or the model wrote. */
const joinText = (parts: readonly Part[]): string =>
  parts
    .map((part) =>
      part.type === "text" && part.synthetic !== true && part.ignored !== true ? part.text : "",
    )
    .join("");

/** Answers the requests of each conversation with its recorded answers, in their order. */
function scriptModel(model: ModelServer, recorded: SessionFile): void {
  for (const child of listChildren(recorded)) {
    const brief = joinText(child.messages[0]?.parts ?? []);
    const isOfChild = (request: ModelRequest) => firstText(request).startsWith(brief);
    model.when(isOfChild, takeInOrder(listAnswers(child, false)));
  }
  model.when(isSummaryRequest, takeInOrder(listAnswers(recorded, true)));
  model.otherwise(takeInOrder(listAnswers(recorded, false)));
}

const listChildren = ({ children }: SessionFile): SessionFile[] =>
  children.flatMap((child) => [child, ...listChildren(child)]);

function firstText({ messages }: ModelRequest): string {
  const content = messages.find(({ role }) => role === "user")?.content;
  return typeof content === "string" ? content : String(toObject(toList(content)[0]).text);
}

/** A request beyond the recorded ones ends its turn with a text that appears in the comparison. */
function takeInOrder(answers: Reply[]): () => Reply {
  const left = [...answers];
  return () => left.shift() ?? "(The recording has no further answer.)";
}

function listAnswers({ messages }: SessionFile, summaries: boolean): Reply[] {
  return messages.flatMap(({ info, parts }) =>
    info.role === "assistant" && (info.summary === true) === summaries ? [toReply({ info, parts })] : [],
  );
}

/** Builds the model's answer from the stored message. */
function toReply({ info, parts }: Message): Reply {
  if (info.role === "assistant" && info.error !== undefined) return reply.failure(400, info.error.message);
  const calls = parts.filter((part) => part.type === "tool").map(toCall);
  const finish = parts.find((part) => part.type === "step-finish");
  const tokens = finish?.type === "step-finish" ? finish.tokens : undefined;
  return [
    ...parts.flatMap((part) => (part.type === "reasoning" ? reply.think(part.text) : [])),
    ...parts.flatMap((part) => (part.type === "text" && part.synthetic !== true ? reply.say(part.text) : [])),
    ...(calls.length > 0 ? [reply.together(...calls)] : []),
    ...(tokens === undefined
      ? []
      : [
          reply.usage({
            promptTokens: tokens.input + tokens.cache.read + tokens.cache.write,
            completionTokens: tokens.output + tokens.reasoning,
            cachedTokens: tokens.cache.read,
          }),
        ]),
  ];
}

function toCall({ tool, sent, state, providerCallId }: ToolPart): reply.CallScript {
  const { tool: name, input } = sent ?? { tool, input: state.input };
  return reply.callScript(name, input ?? {}, providerCallId === undefined ? {} : { id: providerCallId });
}

const findParts = (file: SessionFile): ToolPart[] => [
  ...file.messages.flatMap(({ parts }) => parts.filter((part) => part.type === "tool")),
  ...file.children.flatMap(findParts),
];

/** Writes a session as text: prompts, answers, calls with their results, and how each answer ended. */
function describeSession(
  { info, messages, children, todos }: SessionFile,
  refused: readonly string[],
): string {
  const lines = messages.flatMap((message) => describeMessage(message, refused));
  const list = todos.map(({ status, content }) => `todo: ${status}: ${content}`);
  const tasks = children.flatMap((child) => ["==== task ====", describeSession(child, refused)]);
  return mask([...lines, ...list, ...tasks].join("\n"), info.cwd);
}

function describeMessage({ info, parts }: Message, refused: readonly string[]): string[] {
  const lines = parts.flatMap((part) => describePart(part, refused));
  if (info.role === "user") return [`---- user (${info.agent}) ----`, ...lines];
  const end = info.error === undefined ? (info.finish ?? "unknown") : `error ${info.error.code}`;
  return [`---- ${info.summary === true ? "summary" : info.agent} (${end}) ----`, ...lines];
}

function describePart(part: Part, refused: readonly string[]): string[] {
  switch (part.type) {
    case "text":
      return [part.text];
    case "reasoning":
      return [`(thought) ${part.text}`];
    case "compaction":
      return [`(compaction, ${part.auto ? "automatic" : "requested"})`];
    case "patch":
      return part.changes.map(({ path }) => `(changed) ${path}`);
    case "tool":
      return describeCall(part, refused);
    default:
      return [];
  }
}

function describeCall({ tool, state }: ToolPart, refused: readonly string[]): string[] {
  const head = `(call) ${tool} ${JSON.stringify(state.input)}`;
  if (refused.includes(tool)) return [head, "(not replayed)"];
  if (state.status === "completed") return [`${head} -> completed`, state.output];
  return state.status === "error"
    ? [`${head} -> ${state.reason}`, state.error]
    : [`${head} -> ${state.status}`];
}

/** Replaces values that differ from run to run. */
function mask(text: string, cwd: string): string {
  return useSlashes(text, [cwd])
    .replaceAll(withSlashes(cwd), "<cwd>")
    .replaceAll(/(?:[A-Z]:)?[\\/][^\s"']*fairlead-home-\w+/g, "<home>")
    .replaceAll(/\b(ses|msg|prt)_[0-9A-Za-z]+/g, "<$1>")
    .replaceAll(/\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b/g, "<duration>")
    .replaceAll(/(?<=http:\/\/127\.0\.0\.1:)\d+/g, "<port>");
}
