import { isRecord } from "../../base/text/record.ts";
import { decodeText, parseTolerantJson } from "./json-text.ts";
import { normalizeKey } from "./keys.ts";
import { type ModelCall, stripName } from "./repair-call.ts";

/** Maximum number of calls in one wrapper. */
const parallelLimit = 32;

/** Names of wrappers, without prefix, case and `_-`: of OpenAI models, and of other agents. */
const wrapperNames: ReadonlySet<string> = new Set(["parallel", "multitooluseparallel", "batch", "batchtool"]);
const listKeys = ["tool_uses", "tool_calls", "invocations", "calls"];
const nameKeys = ["recipient_name", "tool", "tool_name", "name"];
const inputKeys = ["parameters", "arguments", "input", "args"];

/** Whether models use the name for a call that contains other calls. */
export function isParallelName(tool: string): boolean {
  return wrapperNames.has(normalizeKey(stripName(tool)).replaceAll(".", ""));
}

/**
 * Returns the calls inside a wrapper such as `multi_tool_use.parallel`, at least one: a wrapper whose calls cannot be
 * read is returned with a problem.
 */
export function splitParallelCall(call: ModelCall): readonly ModelCall[] {
  const refuse = (problem: string): ModelCall[] => [{ ...call, problem, isRefused: true }];
  const wrapper = readWrapper(call);
  if (wrapper === undefined) return refuse(`${call.problem ?? "The arguments are no object."} ${advice}`);
  const uses = findList(wrapper);
  if (uses === undefined) return refuse(`${call.tool} needs a list of calls in tool_uses. ${advice}`);
  if (uses.length === 0) return refuse(`The list of calls in ${call.tool} is empty. ${advice}`);
  if (uses.length > parallelLimit)
    return refuse(`${call.tool} contains ${uses.length} calls, ${parallelLimit} at most are run. ${advice}`);
  return uses.map((use, index) => ({
    ...readUse(use),
    wrapper: { name: call.tool, index, count: uses.length },
  }));
}

const advice = "Nothing was run. Call each tool by its own name; several calls in one answer are fine.";

function readWrapper({
  input,
  problem,
  malformed,
}: ModelCall): Readonly<Record<string, unknown>> | undefined {
  if (problem !== undefined && malformed === undefined) return undefined;
  // Not completed: a call at the end may be a write or a command.
  const value =
    malformed === undefined ? input : decodeText(parseTolerantJson(malformed, { mayHaveProse: true })?.value);
  const wrapper = Array.isArray(value) ? { tool_uses: value } : value;
  return isRecord(wrapper) ? wrapper : undefined;
}

function findList(wrapper: Readonly<Record<string, unknown>>): readonly unknown[] | undefined {
  const list = decodeText(pick(wrapper, listKeys));
  return Array.isArray(list) ? list : undefined;
}

function readUse(use: unknown): ModelCall {
  const record = decodeText(use);
  if (!isRecord(record)) return { tool: "", input: {} };
  const name = pick(record, nameKeys);
  const input = pick(record, inputKeys);
  return { tool: typeof name === "string" ? name : "", input: decodeText(input ?? {}) };
}

function pick(record: Readonly<Record<string, unknown>>, keys: readonly string[]): unknown {
  const key = keys.find((one) => Object.hasOwn(record, one));
  return key === undefined ? undefined : record[key];
}
