import { expect, test } from "vitest";
import { memoizePer } from "../../../src/base/memoize.ts";

test("memoizes per owner until one of the inputs changes", () => {
  const stored = memoizePer<string>();
  const made: string[] = [];
  const [owner, other] = [{}, {}];
  const make = (what: string) => () => {
    made.push(what);
    return what;
  };
  const part = {};
  expect(stored(owner, [part, 1], make("a"))).toBe("a");
  expect(stored(owner, [part, 1], make("b"))).toBe("a");
  expect(stored(other, [part, 1], make("c"))).toBe("c");
  expect(stored(owner, [{}, 1], make("d"))).toBe("d");
  expect(stored(owner, [part, 1], make("e"))).toBe("e");
  expect(stored(owner, [part], make("f"))).toBe("f");
  expect(made).toEqual(["a", "c", "d", "e", "f"]);
});
