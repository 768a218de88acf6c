import { expect, test } from "vitest";
import { errorFields } from "../../../src/base/error-fields.ts";

test("a log line has the stacks of an error and of its causes", () => {
  const inner = new Error("disk full");
  const { error, stack } = errorFields(new Error("turn failed", { cause: inner }));
  expect(error).toBe("turn failed");
  expect(stack).toMatch(/^Error: turn failed\n +at [^]*\nCaused by: Error: disk full\n +at /);
});

test("a value that is not an error has a message and no stack", () => {
  expect(errorFields("odd")).toEqual({ error: "odd", stack: undefined });
});

test("errors that are causes of each other have a bounded stack", () => {
  const one = new Error("one");
  const two = new Error("two", { cause: one });
  one.cause = two;
  expect(String(errorFields(one).stack).split("Caused by").length).toBeLessThan(10);
});
