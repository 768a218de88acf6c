import * as fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { newMessageId, newPartId, newSessionId } from "../../src/message/ids.ts";
import { messageSchema, sessionInfoSchema } from "../../src/message/message.ts";
import { isPlainMessage, isPlainSession } from "../../src/message/plain.ts";

const schema = messageSchema.extend({ seq: z.number().int().nonnegative() });
const ids = { id: newMessageId(), sessionId: newSessionId() };
const model = { provider: "p", model: "m" };
const tokens = { input: 1, output: 2, reasoning: 0, cache: { read: 0, write: 0.5 } };
const change = { path: "/a", operation: "update", before: null, after: "a1", additions: 1, deletions: 0 };
const decision = {
  outcome: "allowed",
  by: "rules",
  permission: "edit",
  subject: "a",
  rule: { permission: "*", pattern: "*", action: "allow" },
  waitedMs: 3,
};
const state = {
  status: "completed",
  input: { filePath: "a" },
  output: "done",
  time: { start: 1, end: 2 },
  changes: [change],
  metadata: { exitCode: 0 },
  compactedAt: 3,
};
const call = { type: "tool", callId: "c", providerCallId: "d", signature: "s", tool: "edit", title: "t" };

/** With every field that is known of plain messages. */
const user = {
  info: {
    ...ids,
    role: "user",
    time: { created: 1 },
    agent: "build",
    model: { ...model, variant: "high" },
    effort: "high",
    steering: true,
  },
  parts: [{ id: newPartId(), type: "text", text: "a", synthetic: true, ignored: false, time: { start: 1 } }],
  seq: 1,
};
const assistant = {
  info: {
    ...ids,
    role: "assistant",
    parentId: newMessageId(),
    time: { created: 1, completed: 2 },
    agent: "build",
    model,
    cost: 0.5,
    tokens,
    finish: "stop",
    summary: true,
    path: { cwd: "/a/b", root: "/a" },
  },
  parts: [
    { id: newPartId(), type: "step-start" },
    { id: newPartId(), type: "reasoning", text: "b", time: { start: 1, end: 2 } },
    {
      id: newPartId(),
      ...call,
      kind: "edit",
      locations: [{ path: "/a", line: 1 }],
      decision,
      state,
    },
    { id: newPartId(), type: "patch", changes: [change] },
    { id: newPartId(), type: "step-finish", reason: "stop", tokens, cost: 0 },
  ],
  seq: 2,
};

const session = {
  id: newSessionId(),
  projectId: "p",
  parentId: newSessionId(),
  parentCallId: "c",
  cwd: "/a",
  additionalDirectories: ["/b"],
  title: "t",
  titleSource: "generated",
  agent: "build",
  model,
  effort: "high",
  cost: 0.5,
  titleCall: { model, tokens, cost: 0.1, time: 1 },
  time: { created: 1, updated: 2, archived: 3, compacting: 4 },
  version: "1",
  approval: "ask",
  approvals: [{ permission: "bash", pattern: "ls *" }],
  autoCompact: true,
  summary: { additions: 1, deletions: 2, files: 1 },
};

test("messages and sessions with all that is known of them are plain", () => {
  expect([user, assistant].map(isPlainMessage)).toEqual([true, true]);
  expect(isPlainSession(session)).toBe(true);
});

/** At one place in the whole: another value, none, or a further field. */
interface Damage {
  where: number;
  name: string;
  value: unknown;
  kind: "replace" | "remove" | "add";
}

const damage: fc.Arbitrary<Damage> = fc.record({
  where: fc.nat(),
  name: fc.constantFrom("__proto__", "id", "type", "error", "attachments", "toString", "time"),
  value: fc.oneof(
    fc.constantFrom(
      null,
      -1,
      0,
      1.5,
      Number.POSITIVE_INFINITY,
      "",
      "user",
      "tool",
      "msg_",
      "prt_1",
      {},
      [],
      true,
    ),
    fc.jsonValue(),
  ),
  kind: fc.constantFrom("replace", "remove", "add"),
});

function damaged(message: object, { where, name, value, kind }: Damage): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(message));
  const places = placesIn(copy);
  const place = places[where % places.length];
  if (place === undefined) return copy;
  const { holder, key } = place;
  if (kind === "remove" && Array.isArray(holder)) holder.splice(Number(key), 1);
  else if (kind === "remove") Reflect.deleteProperty(holder, key);
  else
    Object.defineProperty(holder, kind === "add" && !Array.isArray(holder) ? name : key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  return copy;
}

function placesIn(value: unknown): { holder: object; key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [{ holder: value, key }, ...placesIn(inner)]);
}

test("what is plain is what the schema makes of it, however it is damaged", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(user, assistant, session),
      fc.array(damage, { minLength: 1, maxLength: 2 }),
      (message, all) => {
        const value = all.reduce<unknown>(
          (before, one) => (typeof before === "object" && before !== null ? damaged(before, one) : before),
          message,
        );
        if (isPlainMessage(value)) expect(schema.parse(value)).toEqual(value);
        if (isPlainSession(value)) expect(sessionInfoSchema.parse(value)).toEqual(value);
      },
    ),
    { numRuns: 2_000 },
  );
});
