import { expect, test } from "vitest";
import type { AgentError } from "../../../../src/message/message.ts";
import { parseRetryAfter } from "../../../../src/model/failure.ts";
import { decideRetry, defaultRetryPolicy, toRetryPolicy } from "../../../../src/model/retry.ts";

const now = Date.parse("2030-01-01T00:00:00Z");
const parse = (headers: Record<string, string>) =>
  parseRetryAfter({ header: (name) => headers[name] ?? null }, now);
const error: AgentError = { code: "overloaded", message: "Busy.", retryable: true };
const decide = (attempt: number, more: Partial<AgentError> = {}, random = 0) =>
  decideRetry(attempt, { ...error, ...more }, { random: () => random, now });

test("a wait is given in milliseconds, seconds or as a date", () => {
  expect(parse({ "retry-after-ms": "250", "retry-after": "9" })).toBe(250);
  expect(parse({ "retry-after": "9" })).toBe(9_000);
  expect(parse({ "retry-after": "0.5" })).toBe(500);
  expect(parse({ "retry-after": "Tue, 01 Jan 2030 00:00:30 GMT" })).toBe(30_000);
  expect(parse({ "retry-after": "2030-01-01T00:00:30Z" })).toBe(30_000);
  expect(parse({ "retry-after": "soon" })).toBeUndefined();
  expect(parse({ "retry-after-ms": "-1" })).toBeUndefined();
  expect(parse({})).toBeUndefined();
});

test.each<Record<string, string>>([
  { "retry-after": "0" },
  { "retry-after-ms": "0", "retry-after": "9" },
  { "retry-after": "-1" },
  { "retry-after": "1, 2" },
  { "retry-after": "Mon, 31 Dec 2029 00:00:00 GMT" },
])("an invalid wait leaves the delay to the program, so that retries spread: %j", (headers) => {
  expect(parse(headers)).toBeUndefined();
});

test("delays double from two seconds, up to a quarter longer, up to half a minute", () => {
  expect([1, 2, 3, 4].map((attempt) => decide(attempt))).toEqual(
    [2_000, 4_000, 8_000, 16_000].map((delayMs) => ({ retry: true, delayMs })),
  );
  expect(decide(1, {}, 0.999)).toEqual({ retry: true, delayMs: 2_500 });
  const policy = { attempts: 9, firstDelayMs: 2_000, maxDelayMs: 30_000, maxWaitMs: 60_000 };
  expect(decideRetry(8, error, { random: () => 0.5, now, policy })).toEqual({ retry: true, delayMs: 30_000 });
});

test("configuration sets the attempts and the longest wait", () => {
  expect(toRetryPolicy(undefined)).toEqual(defaultRetryPolicy);
  expect(toRetryPolicy({ attempts: 2, max_wait_ms: 5 })).toEqual({
    ...defaultRetryPolicy,
    attempts: 2,
    maxWaitMs: 5,
  });
});

test("the fifth attempt is the last", () => {
  expect(decide(5)).toEqual({ retry: false, error: { ...error, message: "Busy. (tried 5 times)" } });
});

test("an error that would repeat is not retried", () => {
  expect(decide(1, { retryable: false })).toEqual({ retry: false, error: { ...error, retryable: false } });
});

test("a provider's wait is respected up to a minute, and above it in the error", () => {
  expect(decide(1, { retryAfterMs: 60_000 })).toEqual({ retry: true, delayMs: 60_000 });
  expect(decide(1, { retryAfterMs: 600_000 })).toMatchObject({
    retry: false,
    error: {
      message:
        "Busy. The provider asks to wait 10 minutes (after 2030-01-01T00:10:00Z); try again then or choose another model.",
    },
  });
  expect(decide(1, { retryAfterMs: 600_000, message: "slow down" })).toMatchObject({
    error: { message: expect.stringMatching(/^slow down\. The provider asks/) },
  });
});
