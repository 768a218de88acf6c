import { nearest } from "../base/text/nearest.ts";
import { isRecord } from "../base/text/record.ts";
import { describeIssue } from "../config/files/expectation.ts";
import { agentConfigSchema, type AgentConfig, type PermissionConfig } from "../config/schema.ts";
import type { ModelRef } from "../message/message.ts";
import { type Action, actionSchema } from "../permission/rule.ts";
import { providerParameter, providerParameterNames } from "./provider-parameters.ts";

/** What was written of an agent as far as it is right, and a sentence for each field that is not. */
export interface ParsedAgentConfig {
  config: AgentConfig;
  /** Request parameters of providers among the keys that the schema does not name. */
  extra: Record<string, unknown>;
  problems: string[];
}

/**
 * Reads field by field, so that a wrong one does not lose the agent. A permission that cannot be read becomes
 * "ask", tools that cannot be read are off: leaving them out could allow what was meant to be denied.
 */
export function parseAgentConfig(raw: unknown): ParsedAgentConfig {
  if (!isRecord(raw)) {
    return { config: {}, extra: {}, problems: ["must be an object with the agent's settings"] };
  }
  const problems: string[] = [];
  const report: Report = (field, reason) => problems.push(`${field}: ${reason}`);
  const config = parseRightFields(mendModel(mendRules(withoutNulls(raw), report), report), report);
  return { config, extra: providerParametersOf(config, report), problems };
}

/** The two halves of `provider/model`; the model's name may contain further slashes. */
export function toModelRef(text: string, variant?: string): ModelRef {
  const slash = text.indexOf("/");
  const ref = { provider: text.slice(0, slash), model: text.slice(slash + 1) };
  return variant === undefined ? ref : { ...ref, variant };
}

type Fields = Record<string, unknown>;
type Report = (field: string, reason: string) => void;

function parseRightFields(fields: Fields, report: Report): AgentConfig {
  const parsed = agentConfigSchema.safeParse(fields);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const { field, message } = describeIssue(issue, fields);
    report(field, message);
  }
  const wrong = new Set(parsed.error.issues.map((issue) => String(issue.path[0])));
  return agentConfigSchema.parse(omit(fields, wrong));
}

function mendModel(fields: Fields, report: Report): Fields {
  const { model } = fields;
  if (typeof model !== "string" || /^[^/\s]+\/\S/.test(model)) return fields;
  report("model", "must be written as provider/model");
  return omit(fields, new Set(["model"]));
}

function mendRules(fields: Fields, report: Report): Fields {
  const mended = { ...fields };
  if (fields["permission"] !== undefined) mended["permission"] = mendPermission(fields["permission"], report);
  if (!agentConfigSchema.shape.tools.safeParse(fields["tools"]).success) {
    report("tools", "must be an object of true and false; no tool is allowed by it until it is");
    mended["tools"] = { "*": false };
  }
  return mended;
}

function mendPermission(value: unknown, report: Report): PermissionConfig {
  if (!isRecord(value)) return mendAction(value, "permission", report);
  return mapRecord(value, (entry, permission) => {
    const field = `permission.${permission}`;
    if (!isRecord(entry)) return mendAction(entry, field, report);
    return mapRecord(entry, (action, pattern) => mendAction(action, `${field}.${pattern}`, report));
  });
}

function mendAction(value: unknown, field: string, report: Report): Action {
  const action = actionSchema.safeParse(value);
  if (action.success) return action.data;
  report(field, "must be allow, ask or deny; it asks until it is");
  return "ask";
}

/** A key without a value in front matter is null; it means the same as no key. */
function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function omit(fields: Fields, keys: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.has(key)));
}

function mapRecord<T>(record: Fields, map: (value: unknown, key: string) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]));
}

function providerParametersOf(config: AgentConfig, report: Report): Fields {
  const extra: Fields = {};
  for (const [key, value] of Object.entries(config)) {
    if (isKnown(key)) continue;
    const parameter = providerParameter(key);
    if (parameter === undefined) report(key, unknownKey(key));
    else extra[parameter] = value;
  }
  return extra;
}

function unknownKey(key: string): string {
  const near = nearest(key, [...Object.keys(agentConfigSchema.shape), ...providerParameterNames]);
  if (near !== undefined) return `there is no such setting; did you mean ${near}?`;
  return "there is no such setting, and it is left out; put it under options to send it to the provider";
}

function isKnown(key: string): boolean {
  return Object.hasOwn(agentConfigSchema.shape, key);
}
