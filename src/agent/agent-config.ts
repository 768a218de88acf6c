import { excerpt } from "../base/text/excerpt.ts";
import { nearest } from "../base/text/nearest.ts";
import { isRecord } from "../base/text/record.ts";
import { describeIssue } from "../config/files/expectation.ts";
import { agentConfigSchema, type AgentConfig } from "../config/schema.ts";
import type { ModelRef } from "../message/message.ts";
import { describeNearMiss } from "../permission/permission-names.ts";
import { type PermissionConfig, repairLongPattern } from "../permission/permission-config.ts";
import { type Action, actionSchema } from "../permission/rule.ts";
import { providerParameter, providerParameterNames } from "./provider-parameters.ts";

/** The valid part of an agent's settings, with a message for each invalid field. */
export interface ParsedAgentConfig {
  config: AgentConfig;
  /** Unknown keys that are request parameters of providers. */
  extra: Record<string, unknown>;
  problems: string[];
}

/**
 * Validates field by field, so that an invalid field does not lose the agent. An invalid permission becomes
 * "ask" and invalid tools are denied, because ignoring them could allow what should be denied.
 */
export function parseAgentConfig(raw: unknown): ParsedAgentConfig {
  if (!isRecord(raw)) {
    return { config: {}, extra: {}, problems: ["must be an object with the agent's settings"] };
  }
  const problems: string[] = [];
  const report: Report = (field, reason) => problems.push(`${field}: ${reason}`);
  const config = parseValidFields(repairModel(repairRules(omitNulls(raw), report), report), report);
  return { config, extra: pickProviderParameters(config, report), problems };
}

/** Splits `provider/model`; the model name may contain further slashes. */
export function toModelRef(text: string, variant?: string): ModelRef {
  const slash = text.indexOf("/");
  const ref = { provider: text.slice(0, slash), model: text.slice(slash + 1) };
  return variant === undefined ? ref : { ...ref, variant };
}

type Fields = Record<string, unknown>;
type Report = (field: string, reason: string) => void;

function parseValidFields(fields: Fields, report: Report): AgentConfig {
  const parsed = agentConfigSchema.safeParse(fields);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const { field, message } = describeIssue(issue, fields);
    report(field, message);
  }
  const wrong = new Set(parsed.error.issues.map((issue) => String(issue.path[0])));
  return agentConfigSchema.parse(omit(fields, wrong));
}

function repairModel(fields: Fields, report: Report): Fields {
  const { model } = fields;
  if (typeof model !== "string" || /^[^/\s]+\/\S/.test(model)) return fields;
  report("model", "must have the form provider/model");
  return omit(fields, new Set(["model"]));
}

function repairRules(fields: Fields, report: Report): Fields {
  const repaired = { ...fields };
  if (fields["permission"] !== undefined)
    repaired["permission"] = repairPermission(fields["permission"], report);
  if (!agentConfigSchema.shape.tools.safeParse(fields["tools"]).success) {
    report("tools", "must be an object of true and false; until then all tools are denied");
    repaired["tools"] = { "*": false };
  }
  return repaired;
}

function repairPermission(value: unknown, report: Report): PermissionConfig {
  if (!isRecord(value)) return repairAction(value, "permission", report);
  return mapRecord(repairPatterns(value, "permission", report), (entry, permission) => {
    const field = `permission.${permission}`;
    const nearMiss = describeNearMiss(permission);
    if (nearMiss !== undefined) report("permission", nearMiss);
    if (!isRecord(entry)) return repairAction(entry, field, report);
    const patterns = repairPatterns(entry, field, report);
    return mapRecord(patterns, (action, pattern) => repairAction(action, `${field}.${pattern}`, report));
  });
}

/** Characters of a long pattern that a message shows. */
const shownLength = 60;

function repairPatterns(patterns: Fields, field: string, report: Report): Fields {
  const repaired = Object.entries(patterns).map(([pattern, value]) => {
    const shorter = repairLongPattern(pattern, value);
    if (shorter === undefined) return [pattern, value];
    report(`${field}.${excerpt(pattern, shownLength)}`, shorter.problem);
    return [shorter.pattern, shorter.action];
  });
  return Object.fromEntries(repaired);
}

function repairAction(value: unknown, field: string, report: Report): Action {
  const action = actionSchema.safeParse(value);
  if (action.success) return action.data;
  report(field, "must be allow, ask or deny; until then it is ask");
  return "ask";
}

/** Omits keys without a value in front matter, which YAML parses as null. */
function omitNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function omit(fields: Fields, keys: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.has(key)));
}

function mapRecord<T>(record: Fields, map: (value: unknown, key: string) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]));
}

function pickProviderParameters(config: AgentConfig, report: Report): Fields {
  const extra: Fields = {};
  for (const [key, value] of Object.entries(config)) {
    if (isKnown(key)) continue;
    const parameter = providerParameter(key);
    if (parameter === undefined) report(key, describeUnknownKey(key));
    else extra[parameter] = value;
  }
  return extra;
}

function describeUnknownKey(key: string): string {
  const near = nearest(key, [...Object.keys(agentConfigSchema.shape), ...providerParameterNames]);
  if (near !== undefined) return `unknown setting; did you mean ${near}?`;
  return "unknown setting, ignored; put it under options to send it to the provider";
}

function isKnown(key: string): boolean {
  return Object.hasOwn(agentConfigSchema.shape, key);
}
