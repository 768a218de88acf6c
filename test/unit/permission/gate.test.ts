import { describe, expect, test } from "vitest";
import { type Deferred, deferred } from "../../../src/base/async.ts";
import type { ApprovalMode } from "../../../src/message/message.ts";
import { newSessionId } from "../../../src/message/ids.ts";
import type { CallDecision } from "../../../src/message/part.ts";
import { Approvals } from "../../../src/permission/approvals.ts";
import { type Answer, type Ask, Gate, type GateCall, type Question } from "../../../src/permission/gate.ts";
import type { PermissionRequest, Rule } from "../../../src/permission/rule.ts";

const session = newSessionId();
const other = newSessionId();
const askAll: Rule[] = [{ permission: "*", pattern: "*", action: "ask" }];
const never = new AbortController().signal;

function call(callId: string, text = callId, options: Partial<GateCall> = {}): GateCall {
  const permissions: PermissionRequest[] = [
    { permission: "bash", subjects: [{ text }], always: [`${text.split(" ")[0]} *`] },
  ];
  return {
    sessionId: session,
    callId,
    agent: "build",
    title: text,
    kind: "execute",
    locations: [],
    input: {},
    permissions,
    ...options,
  };
}

/** A user who answers when the test decides. */
function user() {
  const requested: { question: Question; signal: AbortSignal; answer: Deferred<Answer> }[] = [];
  const arrivals: Deferred<void>[] = [];
  const ask: Ask = (question, signal) => {
    const answer = deferred<Answer>();
    requested.push({ question, signal, answer });
    arrivals[requested.length - 1]?.resolve();
    return answer.promise;
  };
  const questionNumber = async (number: number) => {
    if (!requested[number]) await (arrivals[number] = deferred()).promise;
    const found = requested[number];
    if (!found) throw new Error(`question ${number} was not asked`);
    return found;
  };
  return { ask, asked: requested, questionNumber };
}

function setUp(options: { ask?: Ask; approvals?: Approvals } = {}) {
  const someone = user();
  const entries: (CallDecision & { callId: string })[] = [];
  const approvals = options.approvals ?? new Approvals();
  const gate = new Gate({
    ask: options.ask ?? someone.ask,
    approvals,
    onDecided: (callId, decision) => entries.push({ callId, ...decision }),
  });
  return { ...someone, gate, approvals, entries };
}

describe("the gate", () => {
  test("allows and denies by rule without asking", async () => {
    const { gate, asked: requested, entries } = setUp();
    const deny: Rule = { permission: "bash", pattern: "rm *", action: "deny" };
    const rules: Rule[] = [{ permission: "*", pattern: "*", action: "allow" }, deny];
    expect(await gate.decide(call("1", "ls"), rules, never)).toEqual({ outcome: "allowed" });
    expect(await gate.decide(call("2", "rm a"), rules, never)).toEqual({
      outcome: "denied",
      permission: "bash",
      subject: "rm a",
      rule: deny,
    });
    expect(requested).toEqual([]);
    expect(entries.map(({ callId, outcome, by, subject }) => [callId, outcome, by, subject])).toEqual([
      ["1", "allowed", "rules", "ls"],
      ["2", "denied", "rules", "rm a"],
    ]);
  });

  test("denies a call without a question if one permission is denied", async () => {
    const { gate, asked: requested } = setUp();
    const permissions = ["ls", "rm a"].map((text) => ({
      permission: "bash",
      subjects: [{ text }],
      always: [],
    }));
    const rules: Rule[] = [...askAll, { permission: "bash", pattern: "rm *", action: "deny" }];
    expect((await gate.decide(call("1", "x", { permissions }), rules, never)).outcome).toBe("denied");
    expect(requested).toEqual([]);
  });

  test("asks for the open permissions, with the patterns of always and the reason", async () => {
    const { gate, questionNumber } = setUp();
    const edit: PermissionRequest = { permission: "edit", subjects: [{ text: "a" }], always: ["a"] };
    const bash = call("1", "git push").permissions;
    const rules: Rule[] = [...askAll, { permission: "edit", pattern: "*", action: "allow" }];
    const decision = gate.decide(call("1", "git push", { permissions: [edit, ...bash] }), rules, never);
    const { question, answer } = await questionNumber(0);
    expect(question).toEqual({
      ...call("1", "git push"),
      always: ["git *"],
      scopes: ["session", "project"],
      reason: 'the rule *: "*" says ask',
    });
    answer.resolve({ reply: "once" });
    expect(await decision).toEqual({ outcome: "allowed" });
  });

  test("does not offer always if one open permission has no pattern", async () => {
    const { gate, questionNumber, approvals } = setUp();
    const permissions = [
      ...call("1", "git push").permissions,
      { permission: "bash", subjects: [{ text: "sh" }], always: [] },
    ];
    const decision = gate.decide(call("1", "x", { permissions }), askAll, never);
    const { question, answer } = await questionNumber(0);
    expect(question.always).toEqual([]);
    answer.resolve({ reply: "always", scope: "session" });
    expect(await decision).toEqual({ outcome: "allowed" });
    expect(approvals.list()).toEqual([]);
  });

  test("asks one question at a time, in order", async () => {
    const { gate, asked: requested, questionNumber } = setUp();
    const decisions = [gate.decide(call("1"), askAll, never), gate.decide(call("2"), askAll, never)];
    (await questionNumber(0)).answer.resolve({ reply: "once" });
    expect(await decisions[0]).toEqual({ outcome: "allowed" });
    const second = await questionNumber(1);
    expect(requested.map(({ question }) => question.callId)).toEqual(["1", "2"]);
    second.answer.resolve({ reply: "once" });
    expect(await decisions[1]).toEqual({ outcome: "allowed" });
  });

  test("always also settles waiting calls that it covers; the others are asked", async () => {
    const { gate, asked: requested, approvals, questionNumber } = setUp();
    const first = gate.decide(call("1", "git push"), askAll, never);
    const covered = gate.decide(call("2", "git pull"), askAll, never);
    const rest = gate.decide(call("3", "npm test"), askAll, never);
    (await questionNumber(0)).answer.resolve({ reply: "always", scope: "session" });
    expect(await Promise.all([first, covered])).toEqual([{ outcome: "allowed" }, { outcome: "allowed" }]);
    (await questionNumber(1)).answer.resolve({ reply: "once" });
    expect(await rest).toEqual({ outcome: "allowed" });
    expect(requested.map(({ question }) => question.callId)).toEqual(["1", "3"]);
    expect(approvals.list()).toEqual([{ permission: "bash", pattern: "git *", scope: "session" }]);
    expect(await gate.decide(call("4", "git log"), askAll, never)).toEqual({ outcome: "allowed" });
    expect(requested.length).toBe(2);
  });

  test("does not let an approval allow what is opaque", async () => {
    const approvals = new Approvals();
    await approvals.add([{ permission: "bash", pattern: "git *" }], "session");
    const { gate, questionNumber } = setUp({ approvals });
    const permissions = [
      { permission: "bash", subjects: [{ text: "git -c x log", opaque: "-c" }], always: [] },
    ];
    const decision = gate.decide(call("1", "x", { permissions }), askAll, never);
    (await questionNumber(0)).answer.resolve({ reply: "reject" });
    expect(await decision).toEqual({ outcome: "rejected" });
  });

  test("allows the call even if the approval could not be saved", async () => {
    const broken = new Approvals({
      load: async () => undefined,
      update: async () => {
        throw new Error("disk full");
      },
    });
    const { gate } = setUp({ approvals: broken, ask: async () => ({ reply: "always", scope: "project" }) });
    expect(await gate.decide(call("1", "git push"), askAll, never)).toEqual({ outcome: "allowed" });
  });

  test("a rejection settles the session's questions, the first one with the reason", async () => {
    const { gate, asked: requested, questionNumber } = setUp();
    const first = gate.decide(call("1"), askAll, never);
    const same = gate.decide(call("2"), askAll, never);
    const elsewhere = gate.decide(call("3", "3", { sessionId: other }), askAll, never);
    (await questionNumber(0)).answer.resolve({ reply: "reject", feedback: "use npm" });
    expect(await first).toEqual({ outcome: "rejected", feedback: "use npm" });
    expect(await same).toEqual({ outcome: "rejected", cause: "step", feedback: "use npm" });
    (await questionNumber(1)).answer.resolve({ reply: "once" });
    expect(await elsewhere).toEqual({ outcome: "allowed" });
    expect(requested.map(({ question }) => question.callId)).toEqual(["1", "3"]);
  });

  test("settles a step only after the reason, and allows none of its calls meanwhile", async () => {
    let mode: ApprovalMode = "ask";
    const reason = deferred<string | undefined>();
    const isAsked = deferred<void>();
    const gate = new Gate({
      approvals: new Approvals(),
      ask: async () => ({ reply: "reject", mayAskWhy: true }),
      askWhy: () => {
        isAsked.resolve();
        return reason.promise;
      },
      mode: () => mode,
    });
    const allowed: Rule[] = [{ permission: "*", pattern: "*", action: "allow" }];
    const first = gate.decide(call("1", "rm", { step: "a" }), askAll, never);
    const same = gate.decide(call("2", "rm", { step: "a" }), askAll, never);
    await isAsked.promise;
    const later = gate.decide(call("3", "ls", { step: "a" }), allowed, never);
    mode = "auto";
    gate.reconsider();
    reason.resolve("use npm");
    expect(await Promise.all([first, same, later])).toEqual([
      { outcome: "rejected", feedback: "use npm" },
      { outcome: "rejected", cause: "step", feedback: "use npm" },
      { outcome: "rejected", cause: "step", feedback: "use npm" },
    ]);
  });

  test("keeps a rejection when the gate closes or the reason cannot be asked", async () => {
    const isAsked = deferred<void>();
    const approvals = new Approvals();
    const ask: Ask = async () => ({ reply: "reject", mayAskWhy: true });
    const open = new Gate({
      approvals,
      ask,
      askWhy: () => {
        isAsked.resolve();
        return deferred<string>().promise;
      },
    });
    const decision = open.decide(call("1"), askAll, never);
    await isAsked.promise;
    open.close();
    expect(await decision).toEqual({ outcome: "rejected" });
    const broken = new Gate({ approvals, ask, askWhy: () => Promise.reject(new Error("no form")) });
    expect(await broken.decide(call("1"), askAll, never)).toEqual({ outcome: "rejected" });
  });

  test("is cancelled on abort without an answer, and continues with the next", async () => {
    const { gate, questionNumber, entries } = setUp();
    const abort = new AbortController();
    const first = gate.decide(call("1"), askAll, abort.signal);
    const next = gate.decide(call("2"), askAll, never);
    const { signal, answer } = await questionNumber(0);
    abort.abort();
    expect(await first).toEqual({ outcome: "cancelled" });
    expect(signal.aborted).toBe(true);
    answer.resolve({ reply: "always", scope: "session" });
    (await questionNumber(1)).answer.resolve({ reply: "once" });
    expect(await next).toEqual({ outcome: "allowed" });
    expect(entries.map(({ callId, outcome, by }) => [callId, outcome, by])).toEqual([
      ["1", "cancelled", "signal"],
      ["2", "allowed", "person"],
    ]);
  });

  test("ignores an answer that arrives too late", async () => {
    const { gate, questionNumber, approvals, asked: requested } = setUp();
    const abort = new AbortController();
    const first = gate.decide(call("1", "git push"), askAll, abort.signal);
    const { answer } = await questionNumber(0);
    abort.abort();
    await first;
    answer.resolve({ reply: "always", scope: "session" });
    const again = gate.decide(call("2", "git push"), askAll, never);
    (await questionNumber(1)).answer.resolve({ reply: "once" });
    await again;
    expect(approvals.list()).toEqual([]);
    expect(requested.length).toBe(2);
  });

  test("cancels a queued call, and one whose signal was aborted before", async () => {
    const { gate, asked: requested, questionNumber } = setUp();
    const abort = new AbortController();
    const first = gate.decide(call("1"), askAll, never);
    const waiting = gate.decide(call("2"), askAll, abort.signal);
    abort.abort();
    expect(await waiting).toEqual({ outcome: "cancelled" });
    expect(await gate.decide(call("3"), askAll, abort.signal)).toEqual({ outcome: "cancelled" });
    (await questionNumber(0)).answer.resolve({ reply: "cancelled" });
    expect(await first).toEqual({ outcome: "cancelled" });
    expect(requested.length).toBe(1);
  });

  test("rejects open and later calls when it is closed", async () => {
    const { gate, questionNumber } = setUp();
    const decisions = [gate.decide(call("1"), askAll, never), gate.decide(call("2"), askAll, never)];
    const { signal } = await questionNumber(0);
    gate.close();
    const closed = { outcome: "rejected", cause: "closed" };
    expect(await Promise.all(decisions)).toEqual([closed, closed]);
    expect(signal.aborted).toBe(true);
    expect(await gate.decide(call("3"), askAll, never)).toEqual(closed);
  });

  test("does not allow a call whose question fails, and says why", async () => {
    const failures: Ask[] = [
      async () => {
        throw new Error("the editor is gone");
      },
      () => {
        throw new Error("no editor");
      },
    ];
    for (const ask of failures) {
      const { gate, entries } = setUp({ ask });
      expect(await gate.decide(call("1"), askAll, never)).toEqual({
        outcome: "unasked",
        problem: expect.stringMatching(/^(the editor is gone|no editor)\.$/),
      });
      expect(entries.map(({ by, outcome }) => [by, outcome])).toEqual([["failure", "unasked"]]);
    }
  });

  test("a rejection rejects all calls of its step, also later ones, and no others", async () => {
    const allowAll: Rule[] = [{ permission: "*", pattern: "*", action: "allow" }];
    const { gate, asked: requested, questionNumber } = setUp();
    const first = gate.decide(call("1", "one", { step: "a" }), askAll, never);
    const waiting = gate.decide(call("2", "two", { step: "a" }), askAll, never);
    (await questionNumber(0)).answer.resolve({ reply: "reject" });
    const later = gate.decide(call("3", "three", { step: "a" }), allowAll, never);
    expect(await Promise.all([first, waiting, later])).toEqual([
      { outcome: "rejected" },
      { outcome: "rejected", cause: "step" },
      { outcome: "rejected", cause: "step" },
    ]);
    const others = [
      gate.decide(call("4", "four", { step: "b" }), allowAll, never),
      gate.decide(call("5", "five", { step: "a", sessionId: other }), allowAll, never),
    ];
    expect(await Promise.all(others)).toEqual([{ outcome: "allowed" }, { outcome: "allowed" }]);
    expect(requested).toHaveLength(1);
  });

  test.each([
    [null],
    ["once"],
    [{}],
    [{ reply: "yes" }],
    [{ reply: "always" }],
    [{ reply: "always", scope: "world" }],
    [{ reply: "ONCE" }],
  ])("treats the strange answer %j as no answer", async (answer) => {
    const { gate } = setUp({ ask: async () => JSON.parse(JSON.stringify(answer ?? null)) });
    expect(await gate.decide(call("1"), askAll, never)).toEqual({
      outcome: "unasked",
      problem: "The editor's answer was none of those offered.",
    });
  });

  test("continues to ask after a failure", async () => {
    let failed = false;
    const ask: Ask = async () => {
      if (failed) return { reply: "once" };
      failed = true;
      throw new Error("once");
    };
    const { gate } = setUp({ ask });
    const decisions = [gate.decide(call("1"), askAll, never), gate.decide(call("2"), askAll, never)];
    expect(await Promise.all(decisions)).toEqual([
      { outcome: "unasked", problem: "once." },
      { outcome: "allowed" },
    ]);
  });
});

describe("limits of a call", () => {
  const limits: Rule[][] = [
    [
      { permission: "*", pattern: "*", action: "allow" },
      { permission: "bash", pattern: "*", action: "ask" },
      { permission: "bash", pattern: "git *", action: "deny" },
    ],
  ];
  const allowAll: Rule[] = [{ permission: "*", pattern: "*", action: "allow" }];

  test("ask and deny what the rules allow, and offer nothing to remember", async () => {
    const { gate, questionNumber } = setUp();
    expect((await gate.decide(call("1", "git push", { limits }), allowAll, never)).outcome).toBe("denied");
    const decision = gate.decide(call("2", "npm test", { limits }), allowAll, never);
    const { question, answer } = await questionNumber(0);
    expect(question.always).toEqual([]);
    answer.resolve({ reply: "once" });
    expect(await decision).toEqual({ outcome: "allowed" });
  });
});

test("a plugin cannot allow a child's call if the parent's repeated call must be asked", async () => {
  const permissions: PermissionRequest[] = [
    { permission: "doom_loop", subjects: [{ text: "read" }], always: [] },
  ];
  const allowAll: Rule[] = [{ permission: "*", pattern: "*", action: "allow" }];
  const gate = new Gate({
    ask: async () => ({ reply: "reject" }),
    approvals: new Approvals(),
    advise: async () => ({ status: "allow" }),
  });
  expect(await gate.decide(call("1", "read", { permissions, within: [askAll] }), allowAll, never)).toEqual({
    outcome: "rejected",
  });
});
