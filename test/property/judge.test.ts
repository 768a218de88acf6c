import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { approvalModeSchema } from "../../src/message/message.ts";
import type { Agent } from "../../src/agent/agent.ts";
import { newSessionId } from "../../src/message/ids.ts";
import { Approvals } from "../../src/permission/approvals.ts";
import { evaluate, judge } from "../../src/permission/judge.ts";
import { Gate } from "../../src/permission/gate.ts";
import { inheritLimits } from "../../src/tasks/child-session.ts";
import type { Action, PermissionRequest, Rule } from "../../src/permission/rule.ts";

const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };
const word = fc.constantFrom("a", "ab", "a b", "b", "b a", "*", "a *", "b *", "?");
const permission = fc.constantFrom("bash", "edit", "doom_loop", "external_directory", "x_tool");
const action = fc.constantFrom<Action>("allow", "ask", "deny");
const rule: fc.Arbitrary<Rule> = fc.record({
  permission: fc.oneof(permission, fc.constant("*")),
  pattern: word,
  action,
});
const rules = fc.array(rule, { maxLength: 6 });
const limits = fc.array(rules, { maxLength: 2 });
const mode = fc.constantFrom(...approvalModeSchema.options);
const subject = fc.record(
  {
    text: fc.constantFrom("a", "ab", "a b", "b", "b a"),
    opaque: fc.constant("it cannot be known"),
    confirm: fc.constant("it must be confirmed"),
  },
  { requiredKeys: ["text"] },
);
const request: fc.Arbitrary<PermissionRequest> = fc.record({
  permission,
  subjects: fc.array(subject, { minLength: 1, maxLength: 3 }),
  always: fc.array(word, { maxLength: 1 }),
});
const approvals = fc.array(
  rule.map((one): Rule => ({ ...one, action: "allow" })),
  { maxLength: 3 },
);
const authority = fc.record({ rules, limits, mode, approvals });

const never = new AbortController().signal;
const advices = fc.constantFrom<"allow" | "ask" | undefined>("allow", "ask", undefined);
const generations = fc.array(fc.record({ rules, limits }), { minLength: 2, maxLength: 4 });

describe("a child", () => {
  test("is never allowed more than its parent, whatever agents and approvals say", async () => {
    const property = fc.asyncProperty(
      request,
      generations,
      mode,
      approvals,
      advices,
      async (question, agents, setting, approved, advice) => {
        const memory = new Approvals();
        await memory.add(approved, "session");
        const gate = new Gate({
          ask: async () => ({ reply: "reject" }),
          approvals: memory,
          mode: () => setting,
          ...(advice && { advise: async () => ({ status: advice }) }),
        });
        const outcomes: string[] = [];
        let parent: Pick<Agent, "rules" | "limits" | "within"> | undefined;
        for (const agent of agents) {
          const bound: typeof parent =
            parent === undefined ? agent : { ...agent, ...inheritLimits(agent, parent) };
          const call = {
            sessionId: newSessionId(),
            callId: "call",
            agent: "any",
            title: "",
            kind: "other" as const,
            locations: [],
            input: {},
            permissions: [question],
            limits: bound.limits,
            within: bound.within,
          };
          outcomes.push((await gate.decide(call, bound.rules, never)).outcome);
          parent = bound;
        }
        const firstNo = outcomes.findIndex((outcome) => outcome !== "allowed");
        if (firstNo !== -1) expect(outcomes.slice(firstNo)).not.toContain("allowed");
        const firstDenied = outcomes.indexOf("denied");
        if (firstDenied !== -1)
          expect(outcomes.slice(firstDenied).every((outcome) => outcome === "denied")).toBe(true);
      },
    );
    await fc.assert(property, { numRuns: 300 });
  });
});

describe("a judgement", () => {
  test("is never laxer than a deny of rules or limits, whatever is approved or set", () => {
    fc.assert(
      fc.property(request, authority, (question, given) => {
        const all = [given.rules, ...given.limits].map((one) => evaluate(question, one).action);
        expect(judge(question, given).action === "deny").toBe(all.includes("deny"));
      }),
    );
  });

  test("of a child is as strict as the child's own and those of all its parents", () => {
    fc.assert(
      fc.property(request, authority, limits, (question, given, within) => {
        const alone = [given.rules, ...within].map((own) => judge(question, { ...given, rules: own }).action);
        const strictest = Math.max(...alone.map((one) => strictness[one]));
        expect(strictness[judge(question, { ...given, within }).action]).toBe(strictest);
      }),
    );
  });

  test("that the user named runs without asking, unless it is denied", () => {
    fc.assert(
      fc.property(request, rules, (question, own) => {
        const requested = judge({ ...question, requested: true }, { rules: own }).action;
        expect(requested).toBe(evaluate(question, own).action === "deny" ? "deny" : "allow");
      }),
    );
  });

  test("is never laxer than any limit", () => {
    fc.assert(
      fc.property(request, authority, (question, given) => {
        const strictest = Math.max(
          0,
          ...given.limits.map((limit) => strictness[evaluate(question, limit).action]),
        );
        expect(strictness[judge(question, given).action]).toBeGreaterThanOrEqual(strictest);
      }),
    );
  });

  test("is the verdict of the rules if there is nothing else", () => {
    fc.assert(
      fc.property(request, rules, (question, own) => {
        expect(judge(question, { rules: own }).action).toBe(evaluate(question, own).action);
      }),
    );
  });

  test("never allows what must be confirmed, nor a loop that the rules ask about", () => {
    fc.assert(
      fc.property(request, authority, (question, given) => {
        const judged = judge(question, { ...given, approvals: [] });
        const isGuarded =
          question.permission === "doom_loop" || question.subjects.some(({ confirm }) => confirm);
        if (isGuarded && evaluate(question, given.rules).action !== "allow")
          expect(judged.action).not.toBe("allow");
      }),
    );
  });

  test("is at most as strict in a wider mode, and accepting edits affects edits only", () => {
    fc.assert(
      fc.property(request, authority, (question, given) => {
        const [ask, edits, auto] = (["ask", "accept-edits", "auto"] as const).map(
          (one) => strictness[judge(question, { ...given, mode: one }).action],
        );
        expect((ask ?? 0) >= (edits ?? 0) && (edits ?? 0) >= (auto ?? 0)).toBe(true);
        if (question.permission !== "edit") expect(edits).toBe(ask);
      }),
    );
  });

  test("asks in auto for an opaque subject to which a deny might apply", () => {
    fc.assert(
      fc.property(
        word.filter((pattern) => pattern !== "*"),
        (pattern) => {
          const question = { permission: "bash", subjects: [{ text: "zz", opaque: "unknown" }], always: [] };
          const own: Rule[] = [
            { permission: "bash", pattern: "*", action: "ask" },
            { permission: "bash", pattern, action: "deny" },
          ];
          expect(judge(question, { rules: own, mode: "auto" }).action).not.toBe("allow");
        },
      ),
    );
  });
});
