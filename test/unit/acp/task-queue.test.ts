import { expect, test } from "vitest";
import { TaskQueue } from "../../../src/acp/view/task-queue.ts";
import { silentLog } from "../../../src/base/log.ts";

test("runs tasks at once while none waits, and later ones in order after a waiting one", async () => {
  const queue = new TaskQueue(silentLog);
  const disk = Promise.withResolvers<void>();
  const done: string[] = [];
  queue.run(() => void done.push("text"));
  expect(done).toEqual(["text"]);
  queue.runAsync(async () => {
    await disk.promise;
    done.push("card");
  });
  queue.run(() => void done.push("more text"));
  queue.runAsync(async () => void done.push("second card"));
  queue.run(() => void done.push("end"));
  expect(done).toEqual(["text"]);
  disk.resolve();
  await queue.idle();
  expect(done).toEqual(["text", "card", "more text", "second card", "end"]);
  queue.run(() => void done.push("next turn"));
  expect(done.at(-1)).toBe("next turn");
});

test("logs a failed task and runs the next one", async () => {
  const errors: string[] = [];
  const queue = new TaskQueue({ ...silentLog, error: (message) => void errors.push(message) });
  const fail = () => {
    throw new Error("broken");
  };
  const done: string[] = [];
  queue.run(fail);
  queue.runAsync(async () => fail());
  queue.run(fail);
  queue.run(() => void done.push("text"));
  await queue.idle();
  expect(done).toEqual(["text"]);
  expect(errors).toEqual(["update failed", "update failed", "update failed"]);
});
