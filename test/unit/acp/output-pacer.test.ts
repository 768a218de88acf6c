import { afterEach, expect, test, vi } from "vitest";
import { OutputPacer } from "../../../src/acp/view/output-pacer.ts";

afterEach(() => void vi.useRealTimers());

test("sends output at once, then once per interval, also when the clock is set back", async () => {
  vi.useFakeTimers();
  const sent: string[] = [];
  const pacer = new OutputPacer({ intervalMs: 100, keep: "all" }, (text) => void sent.push(text));
  pacer.add("a");
  expect(sent).toEqual(["a"]);
  vi.setSystemTime(Date.now() - 24 * 60 * 60 * 1000);
  pacer.add("b");
  pacer.add("c");
  await vi.advanceTimersByTimeAsync(50);
  expect(sent).toEqual(["a"]);
  await vi.advanceTimersByTimeAsync(50);
  expect(sent).toEqual(["a", "bc"]);
  pacer.add("d");
  pacer.end();
  expect(sent).toEqual(["a", "bc", "d"]);
});
