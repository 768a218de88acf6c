import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Arrivals, Stall } from "../../src/model/arrivals.ts";

const signal = new AbortController().signal;

async function collect<T>(arrivals: Arrivals<T>): Promise<T[]> {
  const taken: T[] = [];
  for (let next = await arrivals.take(); next !== undefined; next = await arrivals.take()) taken.push(next);
  return taken;
}

test("everything is taken in order, whoever is first, and an error comes behind what was there", async () => {
  const arrivals = new Arrivals<number>(signal, 10_000);
  void arrivals.push(1);
  void arrivals.push(2);
  const taken = collect(arrivals);
  await sleep(1);
  void arrivals.push(3);
  arrivals.end();
  void arrivals.push(4);
  expect(await taken).toEqual([1, 2, 3]);

  const broken = new Arrivals<number>(signal, 10_000);
  void broken.push(1);
  broken.end({ thrown: "broken" });
  broken.end();
  expect(await broken.take()).toBe(1);
  await expect(broken.take()).rejects.toBe("broken");
  arrivals.close();
  broken.close();
});

test("whoever brings more than fits waits until some of it is taken, or nobody takes any more", async () => {
  for (const makeRoom of ["take", "close"] as const) {
    const arrivals = new Arrivals<number>(signal, 10_000);
    let count = 0;
    let room: Promise<void> | undefined;
    while (room === undefined) room = arrivals.push(count++);
    expect(count).toBeLessThan(100);
    let isFree = false;
    void room.then(() => (isFree = true));
    await sleep(1);
    expect(isFree).toBe(false);
    await arrivals[makeRoom]();
    await room;
    arrivals.close();
  }
});

test("what came at once over the room is taken before there is room again", async () => {
  const arrivals = new Arrivals<number>(signal, 10_000);
  const pushed = Array.from({ length: 100 }, (_, index) => arrivals.push(index));
  let isFree = false;
  void pushed.at(-1)?.then(() => (isFree = true));
  for (let index = 0; index < 80; index++) expect(await arrivals.take()).toBe(index);
  expect(isFree).toBe(false);
  for (let index = 80; index < 100; index++) expect(await arrivals.take()).toBe(index);
  expect(isFree).toBe(true);
  arrivals.close();
});

test("silence is counted while somebody waits, each time anew", async () => {
  const arrivals = new Arrivals<number>(signal, 100);
  for (let index = 0; index < 3; index++) {
    setTimeout(() => void arrivals.push(index), 40);
    expect(await arrivals.take()).toBe(index);
  }
  // Whoever works on what came does not wait.
  await sleep(150);
  setTimeout(() => void arrivals.push(3), 40);
  expect(await arrivals.take()).toBe(3);
  await expect(arrivals.take()).rejects.toBeInstanceOf(Stall);
  arrivals.close();
});

test("an abort is thrown at once, also over what is there", async () => {
  const controller = new AbortController();
  const arrivals = new Arrivals<number>(controller.signal, 10_000);
  const taking = arrivals.take();
  controller.abort("enough");
  await expect(taking).rejects.toBe("enough");
  void arrivals.push(1);
  await expect(arrivals.take()).rejects.toBe("enough");
  arrivals.close();
});
