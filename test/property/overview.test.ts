import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Agent } from "../../src/agent/agent.ts";
import { loadAgents } from "../../src/agent/agents.ts";
import { checkCommand } from "../../src/cli/commands/permission-check.ts";
import { evaluate, judge } from "../../src/permission/judge.ts";
import { outputRules, readingCommandRules } from "../../src/permission/default-rules.ts";
import { parseRules } from "../../src/permission/parse-rules.ts";
import { isCatchAll } from "../../src/permission/pattern.ts";
import { type Action, actionSchema, type Rule, type Ruleset } from "../../src/permission/rule.ts";
import { describeRules } from "../../src/slash-commands/permissions-command.ts";
import { tries } from "../support/run-length.ts";
import { context } from "../unit/shell/shell-table.ts";

const outputFolder = "/data/output";
const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };

const action = fc.constantFrom<Action>("allow", "ask", "deny");
const reading = readingCommandRules().map(({ pattern }) => pattern);
const readingPattern = fc.constantFrom(...reading);
const pattern = fc.oneof(
  fc.constantFrom("*", "*", "git *", "git log *", "git status *", "npm test", "rm *", "cd *", "curl *", "c*"),
  readingPattern,
);
const byPattern = fc.dictionary(pattern, action, { maxKeys: 5 });
const permissions = fc.dictionary(
  fc.constantFrom("bash", "*", "edit", "read", "external_directory", "b*"),
  fc.oneof(action, byPattern),
  { maxKeys: 4 },
);
const config = fc.record({ permission: permissions, own: permissions });
const agentName = fc.constantFrom("build", "plan", "explore", "general", "mine");
const command = fc.oneof(
  fc.constantFrom("npm test", "rm a", "git push", "git log -3", "git status", "ls", "cd src && ls", "cat a"),
  fc.constantFrom("head /data/output/tool_1", "cat /etc/hosts", "echo x > a", "sed -i s/a/b/ a", "curl x"),
  readingPattern.map((one) => one.replace(/ \*$/, "")),
);

async function agentOf(name: string, given: { permission: object; own: object }): Promise<Agent> {
  const { agents } = await loadAgents({
    config: {
      permission: JSON.parse(JSON.stringify(given.permission)),
      agent: { [name]: { permission: given.own } },
    },
    folders: [],
    outputFolder,
    skillFolders: [],
    home: "/home/ada",
  });
  const agent = agents.get(name);
  if (agent === undefined) throw new Error(`no agent ${name}`);
  return agent;
}

/** Parses the lines of an overview into rules. */
function readOverview(lines: readonly string[]): Rule[] {
  return lines.flatMap((line) => {
    const [, names = "", reply = ""] = /^- ([^:]+): (.*)$/.exec(line) ?? [];
    return names.split(", ").flatMap((name) => {
      const permission = name === "everything" ? "*" : name;
      return [
        ...reply.matchAll(
          /(allow|ask|deny)( what only reads| readers of| what can be undone)?(?: `([^`]*)`)?(?:, |$)/g,
        ),
      ].flatMap(([, verb, list, text]): Ruleset => {
        if (list === " what only reads") return readingCommandRules();
        if (list === " readers of") return outputRules("bash", text ?? "");
        const rule = { permission, pattern: text ?? "*", action: actionSchema.parse(verb) };
        return [list === " what can be undone" ? { ...rule, asksIfIrreversible: true } : rule];
      });
    });
  });
}

describe("the overview of rules", () => {
  test("shows the same verdict for each command as permissions check", async () => {
    const property = fc.asyncProperty(agentName, config, command, async (name, given, line) => {
      const agent = await agentOf(name, given);
      const { rules, limits = [] } = agent;
      const shown = {
        rules: readOverview(describeRules(rules)),
        limits: limits.map((limit) => readOverview(describeRules(limit))),
      };
      expect(checkCommand(line, context, shown).action).toBe(
        checkCommand(line, context, { rules, limits }).action,
      );
    });
    await fc.assert(property, { numRuns: tries(300) });
  });

  test("names a list of the program only if all of it applies", () => {
    const some: Rule[] = [
      { permission: "bash", pattern: "*", action: "ask" },
      { permission: "bash", pattern: "git status *", action: "allow" },
    ];
    expect(describeRules(some)).toEqual(["- bash: ask, allow `git status *`"]);
    expect(describeRules([...some.slice(0, 1), ...readingCommandRules()])).toEqual([
      "- bash: ask, allow what only reads",
    ]);
  });

  test("names nothing twice and ends with no rule that its limit makes void", async () => {
    const plan = await agentOf("plan", { permission: { edit: "ask", bash: "ask" }, own: {} });
    const lines = describeRules(plan.rules);
    expect(lines.filter((line) => line.includes("edit"))).toEqual([
      "- edit: deny, allow `.opencode/plans/*.md`, allow `.fairlead/plans/*.md`",
    ]);
    expect(lines.filter((line) => line.includes("bash"))).toEqual(["- bash: ask, allow what only reads"]);
    for (const limit of plan.limits ?? []) {
      const names = describeRules(limit).flatMap((line) => line.slice(2).split(":")[0]?.split(", ") ?? []);
      expect(names.filter((one) => ["question", "plan_exit"].includes(one))).toEqual([
        "question",
        "plan_exit",
      ]);
    }
  });
});

describe("an agent that only reads", () => {
  const scriptedUser = permissions.map((permission) => ({ permission, own: {} }));

  test("keeps its reading commands under a general ask, not against a rule for one", async () => {
    const property = fc.asyncProperty(
      fc.constantFrom("plan", "explore"),
      scriptedUser,
      readingPattern,
      async (name, given, one) => {
        const { rules, limits } = await agentOf(name, given);
        const text = one.replace(/ \*$/, "");
        const requested = { permission: "bash", subjects: [{ text }], always: [] };
        const own = (await agentOf("build", given)).rules.filter(
          ({ permission }) => !["question", "plan_enter"].includes(permission),
        );
        const byUser = evaluate(requested, own);
        const isGeneral = isCatchAll(byUser.rule?.pattern ?? "*");
        const expected = byUser.action === "ask" && isGeneral ? "allow" : byUser.action;
        const judged = judge(requested, { rules, limits }).action;
        // An ask that a later general ask of the same user hides still asks.
        if (judged !== expected) expect([judged, expected]).toEqual(["ask", "allow"]);
        if (byUser.action === "deny") expect(judged).toBe("deny");
        const saysNothing = own.every(
          ({ permission, pattern }) => !["*", "bash"].includes(permission) || isCatchAll(pattern),
        );
        if (saysNothing && byUser.action === "ask") expect(judged).toBe("allow");
      },
    );
    await fc.assert(property, { numRuns: tries(150) });
  });

  test("follows the user's general rules for everything that its limit leaves open", async () => {
    const requested = fc.constantFrom(
      ["read", "src/a.ts"],
      ["read", ".env"],
      ["webfetch", "https://example.org"],
      ["external_directory", "/etc"],
      ["task", "explore"],
      ["question", "*"],
      ["x_tool", "*"],
    );
    const name = fc.constantFrom("webfetch", "x_tool", "read", "external_directory", "*", "task", "question");
    const general = fc.dictionary(name, action, { maxKeys: 4 });
    const property = fc.asyncProperty(
      fc.constantFrom("plan", "explore"),
      general,
      requested,
      async (agent, permission, [wanted = "", text = ""]) => {
        const { rules, limits } = await agentOf(agent, { permission, own: {} });
        const request = { permission: wanted, subjects: [{ text }], always: [] };
        const builtIn = (await agentOf(agent, { permission: {}, own: {} })).rules;
        const laid = [...builtIn, ...parseRules(permission, "/home/ada")];
        expect(judge(request, { rules, limits }).action).toBe(judge(request, { rules: laid, limits }).action);
      },
    );
    await fc.assert(property, { numRuns: tries(150) });
  });

  test("is no laxer for anything else", async () => {
    const subject = fc.constantFrom("npm test", "rm a", "git push", "npx x", "make");
    const property = fc.asyncProperty(
      fc.constantFrom("plan", "explore"),
      scriptedUser,
      subject,
      async (name, given, text) => {
        const { rules, limits } = await agentOf(name, given);
        const user = (await agentOf("build", given)).rules;
        for (const permission of ["bash", "edit"]) {
          const requested = { permission, subjects: [{ text }], always: [] };
          const judged = strictness[judge(requested, { rules, limits }).action];
          expect(judged).toBeGreaterThanOrEqual(strictness[evaluate(requested, user).action]);
          expect(judged).toBeGreaterThanOrEqual(1);
        }
      },
    );
    await fc.assert(property, { numRuns: tries(150) });
  });
});
