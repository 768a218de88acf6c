import { AcpSchema, type SchemaName } from "./acp-schema.ts";
import { draftRules } from "./draft-rules.ts";
import { sessionRules } from "./session-rules.ts";
import { hasLoneSurrogate } from "../model/model-checks.ts";
import { isObject, toList, toObject, toText, type JsonObject } from "../json.ts";
import type { Violation } from "./violation.ts";
import type { WireLog } from "./wire-log.ts";
import { type Call, isUpdate, getSessionId, parseTraffic, type Traffic } from "./wire-traffic.ts";

/** Maximum bytes of a line; some clients fail at 10 MiB, so 1 MiB is a safe limit. */
const lineLimitBytes = 1024 * 1024;

const schemas = {
  stable: new AcpSchema("stable"),
  unstable: new AcpSchema("unstable"),
  draft: new AcpSchema("draft"),
  draftUnstable: new AcpSchema("draftUnstable"),
};

/** Finds the problems that a strict client would have with the agent's messages. */
export function wireViolations(log: WireLog): Violation[] {
  const traffic = parseTraffic(log.entries);
  const violations = [
    ...lineViolations(log),
    ...answerViolations(log, traffic),
    ...schemaViolations(traffic),
    ...(versionOf(traffic) === 2 ? draftRules(traffic) : stableRules(traffic)),
  ];
  return violations.sort((one, other) => one.order - other.order);
}

const stableRules = (traffic: Traffic[]): Violation[] => [
  ...capabilityViolations(traffic),
  ...selectionViolations(traffic),
  ...sessionRules(traffic),
];

/** The protocol version of the agent's response. */
function versionOf(traffic: Traffic[]): unknown {
  const answers = traffic.filter((item) => item.type === "answer" && item.call?.method === "initialize");
  return answers.map((item) =>
    item.type === "answer" ? toObject(item.result).protocolVersion : undefined,
  )[0];
}

function lineViolations(log: WireLog): Violation[] {
  const violations: Violation[] = [];
  for (const { order, direction, line, problem } of log.entries) {
    if (direction === "toAgent") continue;
    if (problem) violations.push({ rule: "line", order, text: `A line ${problem}: ${line.slice(0, 200)}` });
    if (problem === undefined && /\\u[dD]/.test(line) && hasLoneSurrogate(JSON.parse(line)))
      violations.push({ rule: "line", order, text: `A line has half of a character: ${line.slice(0, 200)}` });
    const bytes = Buffer.byteLength(line);
    if (bytes > lineLimitBytes) violations.push({ rule: "size", order, text: `A line has ${bytes} bytes.` });
  }
  if (log.unfinished !== "" && !log.cut) {
    violations.push({
      rule: "line",
      order: log.entries.length,
      text: `The last line has no end: ${log.unfinished}`,
    });
  }
  return violations;
}

function answerViolations(log: WireLog, traffic: Traffic[]): Violation[] {
  const violations: Violation[] = [];
  const open = new Map(
    traffic.filter((item) => item.type === "call").map((call) => [call.order, call] as const),
  );
  for (const item of traffic) {
    if (item.type !== "answer") continue;
    if (item.call) open.delete(item.call.order);
    else if (item.by === "fromAgent" && !isProtocolError(item.id, item.error)) {
      violations.push({
        rule: "answer",
        order: item.order,
        text: `The id ${item.id} answers no open request.`,
      });
    }
  }
  for (const call of open.values()) {
    if (call.by === "fromAgent" || log.cut) continue;
    violations.push({
      rule: "answer",
      order: call.order,
      text: `${call.method} (id ${call.id}) was never answered.`,
    });
  }
  return violations;
}

/** A message with an unknown id gets a response with the id null (JSON-RPC 2.0, 5). */
const isProtocolError = (id: unknown, error: JsonObject | undefined): boolean =>
  id === null && (error?.code === -32700 || error?.code === -32600);

function schemaViolations(traffic: Traffic[]): Violation[] {
  const name = schemaFor(traffic);
  const schema = schemas[name];
  const wider = schemas[name === "draft" ? "draftUnstable" : "unstable"];
  const readsDeleted = toObject(capabilitiesIn(traffic)._meta).deleted_diffs === true;
  return traffic.flatMap((item) => {
    if (item.by === "toAgent") return [];
    const problems = schemaProblems(readsDeleted ? omitDeleted(item) : item, schema, wider);
    return problems.map((text) => ({ rule: "schema" as const, order: item.order, text }));
  });
}

/** Removes the field of a draft that no schema has yet, for clients that ask for it. */
function omitDeleted(item: Traffic): Traffic {
  if (item.type === "answer") return item;
  const params = JSON.stringify(item.params, (_, value: unknown) => {
    if (!isObject(value) || value.type !== "diff") return value;
    const { deleted: _deleted, ...diff } = value;
    return diff;
  });
  return { ...item, params: toObject(JSON.parse(params)) };
}

/** A client that names an unstable capability receives unstable content. */
function schemaFor(traffic: Traffic[]): SchemaName {
  if (versionOf(traffic) === 2) return "draft";
  const { plan, subagents } = capabilitiesIn(traffic);
  return isObject(plan) || isObject(subagents) ? "unstable" : "stable";
}

function capabilitiesIn(traffic: Traffic[]): JsonObject {
  const call = traffic.find((item) => item.type === "call" && item.method === "initialize");
  return call?.type === "call" ? toObject(call.params.clientCapabilities) : {};
}

function schemaProblems(item: Traffic, schema: AcpSchema, wider: AcpSchema): string[] {
  // Sent only to a client that called the unstable `auth/status`.
  if (item.type !== "answer")
    return (item.method === "auth/status_update" ? wider : schema).ofCall(item.method, item.params);
  if (item.error) return schema.ofError(item.error);
  if (!item.call) return [];
  const { method } = item.call;
  return (isAnsweredWider(item.call, schema) ? wider : schema).ofResult(method, item.result);
}

/** Responses to unstable calls, and the first response, which advertises unstable capabilities. */
const isAnsweredWider = ({ method, params }: Call, schema: AcpSchema): boolean =>
  !schema.hasMethod(method) || method === "initialize" || "archived" in params;

function capabilityViolations(traffic: Traffic[]): Violation[] {
  const violations: Violation[] = [];
  let capabilities: JsonObject = {};
  for (const item of traffic) {
    if (item.type === "call" && item.method === "initialize")
      capabilities = toObject(item.params.clientCapabilities);
    if (item.by === "toAgent") continue;
    for (const used of capabilitiesUsed(item)) {
      if (hasCapability(capabilities, used)) continue;
      violations.push({
        rule: "capability",
        order: item.order,
        text: `The client did not advertise ${used}.`,
      });
    }
  }
  return violations;
}

/** The client capabilities that a message needs, as paths. */
function capabilitiesUsed(item: Traffic): string[] {
  if (item.type === "answer") {
    const result = toObject(item.result);
    const methods = toList(result.authMethods).map(toObject);
    return [
      ...optionCapabilities(result.configOptions),
      ...methods.filter(({ type }) => type === "terminal").map(() => "auth.terminal"),
    ];
  }
  if (item.method.startsWith("terminal/")) return ["terminal"];
  if (item.method === "fs/read_text_file") return ["fs.readTextFile"];
  if (item.method === "fs/write_text_file") return ["fs.writeTextFile"];
  if (item.method === "elicitation/create") return [`elicitation.${toText(item.params.mode) ?? "form"}`];
  return isUpdate(item) ? updateCapabilities(toObject(item.params.update)) : [];
}

function updateCapabilities(update: JsonObject): string[] {
  const kind = String(update.sessionUpdate);
  const meta = Object.keys(toObject(update._meta));
  return [
    ...(kind === "notice" ? ["session.notices"] : []),
    ...(kind.startsWith("compaction_") ? ["session.compaction"] : []),
    ...(kind === "plan_update" || kind === "plan_removed" ? ["plan"] : []),
    ...(kind === "subagent_update" ? ["subagents"] : []),
    ...optionCapabilities(update.configOptions),
    ...(meta.some((key) => /^terminal_(info|output|exit)$/.test(key)) ? ["_meta.terminal_output"] : []),
  ];
}

const optionCapabilities = (options: unknown): string[] =>
  toList(options).some((option) => toObject(option).type === "boolean")
    ? ["session.configOptions.boolean"]
    : [];

function hasCapability(capabilities: JsonObject, path: string): boolean {
  let value: unknown = capabilities;
  for (const key of path.split(".")) value = toObject(value)[key];
  return value === true || isObject(value);
}

function selectionViolations(traffic: Traffic[]): Violation[] {
  const modes = new Map<string | undefined, string[]>();
  return traffic.flatMap((item): Violation[] => {
    if (item.by === "toAgent" || item.type === "call") return [];
    const carried = item.type === "answer" ? toObject(item.result) : toObject(item.params.update);
    // A fork's response is about the new session, not about its source.
    const session = toText(carried.sessionId) ?? getSessionId(item);
    if (isObject(carried.modes)) modes.set(session, idsOf(carried.modes.availableModes, "id"));
    const current = toText(toObject(carried.modes).currentModeId) ?? toText(carried.currentModeId);
    const options = toList(carried.configOptions).map(toObject);
    // This update is the only way to announce new modes.
    const mode = options.find(({ category }) => category === "mode");
    if (mode !== undefined) modes.set(session, valuesOf(mode));
    const problems = options.flatMap(optionProblems);
    if (current !== undefined && !modes.get(session)?.includes(current))
      problems.push(`The mode ${current} is not offered.`);
    return problems.map((text) => ({ rule: "selection", order: item.order, text }));
  });
}

function optionProblems(option: JsonObject): string[] {
  if (option.type === "boolean") return [];
  const values = valuesOf(option);
  const current = String(option.currentValue);
  return values.includes(current)
    ? []
    : [`The option ${String(option.id)} has the value ${current}, which is not offered.`];
}

function valuesOf(option: JsonObject): string[] {
  return toList(option.options).flatMap((entry) =>
    "group" in toObject(entry) ? idsOf(toObject(entry).options, "value") : idsOf([entry], "value"),
  );
}

const idsOf = (list: unknown, key: string): string[] =>
  toList(list).map((entry) => String(toObject(entry)[key]));
