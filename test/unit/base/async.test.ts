import { expect, test } from "vitest";
import { Serial } from "../../../src/base/async.ts";

test("tasks run in order, each after the one before, until none is left", async () => {
  const serial = new Serial();
  const disk = Promise.withResolvers<void>();
  const done: string[] = [];
  expect(serial.isIdle).toBe(true);
  void serial.run(async () => {
    await disk.promise;
    done.push("card");
  });
  void serial.run(() => void done.push("text"));
  expect([serial.isIdle, done]).toEqual([false, []]);
  disk.resolve();
  await serial.idle();
  expect([serial.isIdle, done]).toEqual([true, ["card", "text"]]);
});

test("a failed task rejects for its caller only, and the next one runs", async () => {
  const serial = new Serial();
  const failed = serial.run(() => Promise.reject(new Error("broken")));
  const next = serial.run(() => "text");
  await expect(failed).rejects.toThrow("broken");
  await expect(next).resolves.toBe("text");
  expect(serial.isIdle).toBe(true);
});
