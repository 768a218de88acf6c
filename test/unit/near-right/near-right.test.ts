import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseArguments } from "../../../src/model/answer/call-arguments.ts";
import { builtInTools } from "../../../src/tool/registry.ts";
import { parseTolerantJson } from "../../../src/tool-calls/repair/json-text.ts";
import { checkCall, findTool, type ModelCall } from "../../../src/tool-calls/repair/repair-call.ts";
import { nearRightCases } from "./near-right-cases.ts";

const all = builtInTools({ skills: [], search: undefined });
const tools = new Map(all.map((tool) => [tool.name, tool]));

/** Parses arguments like the stream. */
function toCall(tool: string, raw: string): ModelCall {
  const { input, problem } = parseArguments(raw);
  return problem === undefined
    ? { tool, input }
    : { tool, input, problem: `The arguments are ${problem}.`, malformed: raw };
}

const check = (call: ModelCall) => checkCall(call, findTool(call.tool, tools), tools);

/** Characters; about 120 tokens. */
const refusalLimit = 480;

describe.each(["types", "json", "fields", "names"] as const)("%s", (group) => {
  const cases = nearRightCases.filter((one) => one.group === group);
  test.each(cases.map((one, index) => [`${index + 1} ${one.tool} ${one.raw.slice(0, 70)}`, one] as const))(
    "%s",
    (_, { tool, raw, runs, says, source }) => {
      expect(source).toMatch(/^https:\/\/github\.com\/.+\/(issues|pull)\/\d+$/);
      const checked = check(toCall(tool, raw));
      if ("problem" in checked) {
        expect(runs, checked.problem).toBeUndefined();
        expect(checked.problem).toMatch(says ?? /./);
        expect(checked.problem.length).toBeLessThan(refusalLimit);
        return;
      }
      expect({ tool: checked.tool.name, input: checked.shown }).toEqual(runs);
      expect(checked.repairs.describe() ?? "").toMatch(says ?? /^/);
    },
  );
});

describe("the corpus", () => {
  const served = nearRightCases.filter(({ runs }) => runs !== undefined);
  const missed = nearRightCases.filter(({ isMissed }) => isMissed === true);

  test("has more than 250 cases, a sixth of them to be rejected", () => {
    expect(nearRightCases.length).toBeGreaterThan(250);
    const refused = nearRightCases.length - served.length - missed.length;
    expect(refused * 6).toBeGreaterThan(nearRightCases.length);
    expect(missed.every(({ runs }) => runs === undefined)).toBe(true);
    expect(missed).toHaveLength(5);
  });

  test.each([
    ["types", 0.88],
    ["json", 0.71],
    ["fields", 0.86],
    ["names", 0.84],
  ] as const)("%s: accepts at least %d of the calls that are clear and harmless", (group, share) => {
    const count = (cases: typeof served) => cases.filter((one) => one.group === group).length;
    expect(count(served) / (count(served) + count(missed))).toBeGreaterThanOrEqual(share);
  });
});

test("truncated calls are not repaired", () => {
  const problem = "The arguments were cut off.";
  for (const tool of ["write", "edit", "multiedit", "apply_patch", "bash", "read"])
    expect(check({ tool, input: undefined, problem })).toEqual({ problem });
});

test("a tool name with capital letters is not a repair", () => {
  const named = new Map(
    all.map((tool) => [`notion_API-${tool.name}`, { ...tool, name: `notion_API-${tool.name}` }]),
  );
  const call = { tool: "notion_API-read", input: { filePath: "a.txt" } };
  const checked = checkCall(call, findTool(call.tool, named), named);
  expect("problem" in checked ? checked.problem : checked.repairs.describe()).toBeUndefined();
});

test("valid calls are not changed", () => {
  const text = fc.string({ minLength: 1 }).filter((one) => !/^(?:null|undefined|None)$/.test(one));
  const calls = fc.oneof(
    fc.record({ tool: fc.constant("write"), input: fc.record({ filePath: text, content: fc.string() }) }),
    fc.record({
      tool: fc.constant("edit"),
      input: fc.record({
        filePath: text,
        oldString: fc.string(),
        newString: fc.string(),
        replaceAll: fc.boolean(),
      }),
    }),
    fc.record({
      tool: fc.constant("read"),
      input: fc.record({ filePath: text, offset: fc.nat(), limit: fc.integer({ min: 1, max: 9999 }) }),
    }),
    fc.record({
      tool: fc.constant("todowrite"),
      input: fc.record({
        todos: fc.array(
          fc.record({
            content: fc.string(),
            status: fc.constantFrom("pending", "in_progress", "completed", "cancelled"),
            priority: fc.constantFrom("high", "medium", "low"),
          }),
        ),
      }),
    }),
  );
  fc.assert(
    fc.property(calls, (call) => {
      const checked = check(call);
      if ("problem" in checked) throw new Error(checked.problem);
      expect(checked.shown).toBe(call.input);
      expect(checked.repairs.isEmpty).toBe(true);
    }),
  );
});

test("no truncated write, edit or command is completed", () => {
  const content = fc.string();
  fc.assert(
    fc.property(content, fc.constantFrom("write", "edit", "bash"), fc.nat(), (text, tool, at) => {
      const inputs = {
        write: { filePath: "a", content: text },
        edit: { filePath: "a", oldString: "x", newString: text },
        bash: { command: `echo ${text}` },
      };
      const whole = JSON.stringify(inputs[tool]);
      const cut = whole.slice(0, 1 + (at % (whole.length - 1)));
      expect(check(toCall(tool, cut))).toHaveProperty("problem");
    }),
  );
});

test("the tolerant parser reads valid JSON like the strict one", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(parseTolerantJson(text)).toEqual({ value: JSON.parse(text), problems: [] });
      if (typeof value !== "object" || value === null) return;
      const padded = parseTolerantJson(`\n${text}}`, {});
      expect(padded?.value).toEqual(JSON.parse(text));
    }),
  );
});
