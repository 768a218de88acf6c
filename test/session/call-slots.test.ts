import { expect, test } from "vitest";
import { CallSlots } from "../../src/tool-calls/call-slots.ts";

/** Calls that end on request, and a record of their starts and ends. */
function scene() {
  const slots = new CallSlots();
  const record: string[] = [];
  const begin = (name: string, concurrency: "shared" | "exclusive") => {
    const gate = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const done = slots.run(concurrency, async () => {
      record.push(`+${name}`);
      started.resolve();
      await gate.promise;
      record.push(`-${name}`);
      return name;
    });
    return {
      done,
      begun: started.promise,
      end: () => gate.resolve(),
      fail: (why: Error) => gate.reject(why),
    };
  };
  return { begin, record };
}

test("shared calls run in parallel", async () => {
  const { begin, record } = scene();
  const [one, two] = [begin("one", "shared"), begin("two", "shared")];
  await Promise.all([one.begun, two.begun]);
  two.end();
  one.end();
  expect(await Promise.all([one.done, two.done])).toEqual(["one", "two"]);
  expect(record).toEqual(["+one", "+two", "-two", "-one"]);
});

test("an exclusive call waits for all earlier calls, and all later ones wait for it", async () => {
  const { begin, record } = scene();
  const read = begin("read", "shared");
  const write = begin("write", "exclusive");
  const late = begin("late", "shared");
  const last = begin("last", "exclusive");
  await read.begun;
  for (const call of [last, late, write]) call.end();
  expect(record).toEqual(["+read"]);
  read.end();
  await Promise.all([read.done, write.done, late.done, last.done]);
  expect(record).toEqual(["+read", "-read", "+write", "-write", "+late", "-late", "+last", "-last"]);
});

test("a call that fails frees its slot and fails for its caller alone", async () => {
  const { begin } = scene();
  const broken = begin("broken", "exclusive");
  const next = begin("next", "exclusive");
  await broken.begun;
  broken.fail(new Error("broken"));
  next.end();
  await expect(broken.done).rejects.toThrow("broken");
  expect(await next.done).toBe("next");
});
