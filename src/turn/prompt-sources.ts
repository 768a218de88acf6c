import changed from "../../prompts/reminders/prompt-changed.md";
import { sha256 } from "../base/text/hash.ts";
import { fill } from "../conversation/reminders.ts";
import type { Message } from "../message/message.ts";
import {
  describeEnvironment,
  describeSkill,
  serverTextLimit,
  serverTextsNotice,
  type SystemPromptInput,
} from "./system-prompt.ts";

/** Maximum characters of one instruction file in a reminder, and of all of them. A longer one is only named. */
const fileTextLimit = 4_000;
const fileTextsLimit = 12_000;
/** Maximum number of skills that a reminder lists. */
const listedSkillsLimit = 20;
const skillDescriptionLimit = 200;
/** Characters of a stored digest. */
const digestLength = 16;

type SourceKind = "file" | "skill" | "server" | "tools" | "environment";

/** A text in the system prompt that can change during a session. */
interface PromptSource {
  readonly kind: SourceKind;
  /** Path, URL or name. */
  readonly name: string;
  readonly text: string;
}

/** Digests by kind and name; empty for a source that no longer exists. */
export type SourceDigests = Readonly<Record<string, string>>;

/** A reminder about changes of the system prompt's sources, with their digests. */
export interface ChangeReminder {
  readonly text: string;
  readonly sources: Record<string, string>;
}

/** Returns the digests of the sources of a system prompt. */
export function digestSources(input: SystemPromptInput): Record<string, string> {
  return Object.fromEntries(listSources(input).map((source) => [keyOf(source), digest(source.text)]));
}

/**
 * Describes how the sources differ from those that the model has seen, which are in the system prompt and in reminders of
 * the visible messages; undefined if they are the same.
 */
export function describeChanges(
  input: SystemPromptInput,
  frozen: SourceDigests,
  messages: readonly Message[],
): ChangeReminder | undefined {
  const sources = listSources(input);
  const seen: SourceDigests = { ...frozen, ...collectReportedSources(messages) };
  const fresh = sources.filter((source) => digest(source.text) !== seen[keyOf(source)]);
  const removed = listRemoved(sources, frozen, seen);
  if (fresh.length === 0 && removed.length === 0) return undefined;
  const isNew = (source: PromptSource) => !seen[keyOf(source)];
  const sections = [
    ...describeFiles(fresh, removed, isNew),
    ...describeSkills(fresh, removed),
    ...describeServers(fresh, removed),
    ...describeTools(fresh, removed),
    ...fresh.filter(({ kind }) => kind === "environment").map(({ text }) => text),
  ];
  return {
    text: fill(changed, { changes: sections.join("\n\n") }).trim(),
    sources: {
      ...Object.fromEntries(fresh.map((source) => [keyOf(source), digest(source.text)])),
      ...Object.fromEntries(removed.map((source) => [keyOf(source), ""])),
    },
  };
}

function listSources(input: SystemPromptInput): PromptSource[] {
  const { instructions, skills, servers = [], onDemand = [], environment } = input;
  return [
    ...instructions.map(({ path, text }) => ({ kind: "file" as const, name: path, text })),
    ...skills.map(({ name, description }) => ({ kind: "skill" as const, name, text: description })),
    ...servers.map(({ name, text }) => ({ kind: "server" as const, name, text })),
    ...onDemand.map(({ server, text }) => ({ kind: "tools" as const, name: server, text })),
    { kind: "environment", name: "", text: describeEnvironment(environment) },
  ];
}

const keyOf = ({ kind, name }: Pick<PromptSource, "kind" | "name">): string => `${kind} ${name}`;

const digest = (text: string): string => sha256(text).slice(0, digestLength);

function collectReportedSources(messages: readonly Message[]): SourceDigests {
  const reported: Record<string, string> = {};
  for (const { parts } of messages)
    for (const part of parts) if (part.type === "text") Object.assign(reported, part.sources);
  return reported;
}

/** Returns the sources that the model has seen and that no longer exist. */
function listRemoved(
  sources: readonly PromptSource[],
  frozen: SourceDigests,
  seen: SourceDigests,
): Pick<PromptSource, "kind" | "name">[] {
  const current = new Set(sources.map(keyOf));
  return (["file", "skill", "server", "tools"] as const).flatMap((kind) => {
    const lead = `${kind} `;
    // An agent without skills or servers receives no reminder about those of another agent.
    const has = (keys: Iterable<string>) => [...keys].some((key) => key.startsWith(lead));
    if (kind !== "file" && !has(current) && !has(Object.keys(frozen))) return [];
    return Object.entries(seen)
      .filter(([key, value]) => value !== "" && key.startsWith(lead) && !current.has(key))
      .map(([key]) => ({ kind, name: key.slice(lead.length) }));
  });
}

type Removed = ReturnType<typeof listRemoved>;

function describeFiles(
  fresh: readonly PromptSource[],
  removed: Removed,
  isNew: (source: PromptSource) => boolean,
): string[] {
  let left = fileTextsLimit;
  const texts = fresh.flatMap((source) => {
    if (source.kind !== "file") return [];
    const { name, text } = source;
    const event = isNew(source) ? "There are new instructions" : "The instructions changed";
    const length = text.trim().length;
    if (length > Math.min(fileTextLimit, left)) {
      const verb = /^https?:/i.test(name) ? "Fetch" : "Read";
      return [`${event} in ${name}. ${verb} it before you go on.`];
    }
    left -= length;
    return [`${event} in ${name}. They are now:\n\n${text.trim()}`];
  });
  const gone = removed.filter(({ kind }) => kind === "file");
  return [...texts, ...gone.map(({ name }) => `The instructions from ${name} no longer apply.`)];
}

function describeSkills(fresh: readonly PromptSource[], removed: Removed): string[] {
  const skills = fresh.filter(({ kind }) => kind === "skill");
  const gone = removed.filter(({ kind }) => kind === "skill").map(({ name }) => name);
  const lines = skills
    .slice(0, listedSkillsLimit)
    .map(({ name, text }) => describeSkill({ name, description: text }, skillDescriptionLimit));
  const rest = skills.length - lines.length;
  return [
    ...(lines.length > 0
      ? [["Skills that are new or changed:", ...lines, ...listRest(rest)].join("\n")]
      : []),
    ...(gone.length > 0 ? [`Skills that are no longer available: ${listNames(gone)}`] : []),
  ];
}

const listRest = (count: number): string[] => (count > 0 ? [`(and ${count} more)`] : []);

const listNames = (names: readonly string[]): string =>
  [names.slice(0, listedSkillsLimit).join(", "), ...listRest(names.length - listedSkillsLimit)].join(" ");

function describeServers(fresh: readonly PromptSource[], removed: Removed): string[] {
  const servers = fresh.filter(({ kind }) => kind === "server");
  let left = serverTextLimit.all;
  const texts = servers.map(({ name, text }) => {
    const limit = Math.min(serverTextLimit.each, left);
    const shown = text.slice(0, limit).toWellFormed();
    left -= shown.length;
    return `The MCP server ${name} now says:\n\n${shown}${text.length > limit ? "… (cut)" : ""}`;
  });
  return [
    ...(texts.length > 0 ? [serverTextsNotice, ...texts] : []),
    ...removed
      .filter(({ kind }) => kind === "server")
      .map(({ name }) => `The instructions of the MCP server ${name} no longer apply.`),
  ];
}

function describeTools(fresh: readonly PromptSource[], removed: Removed): string[] {
  const lines = fresh.filter(({ kind }) => kind === "tools").map(({ text }) => text);
  const gone = removed.filter(({ kind }) => kind === "tools").map(({ name }) => name);
  return [
    ...(lines.length > 0 ? [["MCP servers with new or other tools on demand:", ...lines].join("\n")] : []),
    ...(gone.length > 0 ? [`MCP servers whose tools are not available now: ${listNames(gone)}`] : []),
  ];
}
