import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { deferred, type Backpressure } from "../../src/base/async.ts";
import { OrderedQueue, StreamTimeoutError } from "../../src/model/answer/ordered-queue.ts";

const { signal } = new AbortController();
const patient = { signal, silenceMs: 10_000 };

/** Takes numbers; each one over 0 is worked on until the next call of `goOn`. */
function slowTaker() {
  const taken: number[] = [];
  let work = deferred<void>();
  const take = (arrival: number): Backpressure => {
    taken.push(arrival);
    work = deferred<void>();
    return arrival > 0 ? work.promise : undefined;
  };
  const goOn = async () => {
    work.resolve();
    await sleep(1);
  };
  return { taken, take, goOn };
}

test("what comes while nobody works is taken before whoever brought it goes on", async () => {
  const { taken, take } = slowTaker();
  const arrivals = new OrderedQueue(patient, take);
  expect(arrivals.push(0)).toBeUndefined();
  expect(taken).toEqual([0]);
  arrivals.end({ by: "all" });
  expect(arrivals.push(0)).toBeUndefined();
  expect(await arrivals.over).toEqual({ by: "all" });
  expect(taken).toEqual([0]);
});

test("everything is taken in order and one at a time, and an error comes behind what was there", async () => {
  const { taken, take, goOn } = slowTaker();
  const arrivals = new OrderedQueue(patient, take);
  for (const arrival of [1, 0, -1, 2, 3]) void arrivals.push(arrival);
  arrivals.end({ by: "producer", thrown: "broken" });
  arrivals.end({ by: "all" });
  expect(taken).toEqual([1]);
  await goOn();
  expect(taken).toEqual([1, 0, -1, 2]);
  let isOver = false;
  void arrivals.over.then(() => (isOver = true));
  await goOn();
  expect(taken).toEqual([1, 0, -1, 2, 3]);
  expect(isOver).toBe(false);
  await goOn();
  expect(await arrivals.over).toEqual({ by: "producer", thrown: "broken" });
});

test("whoever brings more than fits waits until some of it is taken, or nobody takes any more", async () => {
  for (const ends of [false, true]) {
    const controller = new AbortController();
    const { take, goOn } = slowTaker();
    const arrivals = new OrderedQueue({ signal: controller.signal, silenceMs: 10_000 }, take);
    let count = 0;
    let backpressure: Backpressure;
    while (backpressure === undefined) backpressure = arrivals.push(++count);
    expect(count).toBeLessThan(100);
    let isFree = false;
    void backpressure.then(() => (isFree = true));
    await sleep(1);
    expect(isFree).toBe(false);
    if (ends) controller.abort();
    await goOn();
    await backpressure;
    arrivals.end({ by: "all" });
  }
});

test("what came at once over the room is taken before there is room again", async () => {
  const { taken, take, goOn } = slowTaker();
  const arrivals = new OrderedQueue(patient, take);
  const pushed = Array.from({ length: 100 }, (_, index) => arrivals.push(index + 1));
  let isFree = false;
  void pushed.at(-1)?.then(() => (isFree = true));
  for (let index = 0; index < 80; index++) await goOn();
  expect(taken).toHaveLength(81);
  expect(isFree).toBe(false);
  for (let index = 80; index < 100; index++) await goOn();
  expect(taken).toHaveLength(100);
  expect(isFree).toBe(true);
  arrivals.end({ by: "all" });
});

test("silence is counted while nobody works, each time anew", async () => {
  const { taken, take, goOn } = slowTaker();
  const arrivals = new OrderedQueue({ signal, silenceMs: 100 }, take);
  for (let index = 0; index < 3; index++) {
    await sleep(40);
    void arrivals.push(0);
  }
  void arrivals.push(1);
  await sleep(150);
  await goOn();
  await sleep(40);
  void arrivals.push(0);
  expect(taken).toEqual([0, 0, 0, 1, 0]);
  expect(await arrivals.over).toMatchObject({ by: "producer", thrown: expect.any(StreamTimeoutError) });
});

test("an abort ends it at once, or behind what is worked on, whatever else is there", async () => {
  const controller = new AbortController();
  const limits = { signal: controller.signal, silenceMs: 10_000 };
  const idle = new OrderedQueue<number>(limits, () => undefined);
  const { taken, take, goOn } = slowTaker();
  const busy = new OrderedQueue(limits, take);
  void busy.push(1);
  void busy.push(2);
  controller.abort("enough");
  expect(await idle.over).toEqual({ by: "producer", thrown: "enough" });
  let isOver = false;
  void busy.over.then(() => (isOver = true));
  await sleep(1);
  expect(isOver).toBe(false);
  await goOn();
  expect(await busy.over).toEqual({ by: "producer", thrown: "enough" });
  expect(taken).toEqual([1]);
  expect(await new OrderedQueue<number>(limits, () => undefined).over).toMatchObject({ thrown: "enough" });
});

test("what whoever takes throws ends it, at once or later", async () => {
  const throwing = new OrderedQueue<number>(patient, () => {
    throw new Error("full");
  });
  expect(throwing.push(1)).toBeUndefined();
  expect(await throwing.over).toEqual({ by: "consumer", thrown: new Error("full") });

  const rejecting = new OrderedQueue<number>(patient, () => Promise.reject(new Error("full")));
  void rejecting.push(1);
  void rejecting.push(2);
  expect(await rejecting.over).toEqual({ by: "consumer", thrown: new Error("full") });
});
