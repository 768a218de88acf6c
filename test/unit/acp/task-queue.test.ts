import { expect, test } from "vitest";
import { TaskQueue } from "../../../src/acp/view/task-queue.ts";
import { silentLog } from "../../../src/base/log.ts";

test("runs tasks in order, each after the one before, and is idle after the last one", async () => {
  const queue = new TaskQueue(silentLog);
  const disk = Promise.withResolvers<void>();
  const done: string[] = [];
  expect(queue.isIdle).toBe(true);
  queue.add(async () => {
    await disk.promise;
    done.push("card");
  });
  queue.add(async () => void done.push("text"));
  queue.add(async () => void done.push("second card"));
  expect([queue.isIdle, done]).toEqual([false, []]);
  disk.resolve();
  await queue.idle();
  expect([queue.isIdle, done]).toEqual([true, ["card", "text", "second card"]]);
});

test("logs a failed task and runs the next one", async () => {
  const errors: string[] = [];
  const queue = new TaskQueue({ ...silentLog, error: (message) => void errors.push(message) });
  const fail = async () => {
    throw new Error("broken");
  };
  const done: string[] = [];
  queue.add(fail);
  queue.add(fail);
  queue.add(async () => void done.push("text"));
  await queue.idle();
  expect(done).toEqual(["text"]);
  expect(errors).toEqual(["update failed", "update failed"]);
});
