import { expect, test } from "vitest";
import { usageUpdate } from "../../../src/acp/view/updates.ts";

test("sends a cost without rounding errors", () => {
  expect(usageUpdate(10, 100, 0.1 + 0.2)).toMatchObject({ cost: { amount: 0.3 } });
  expect(usageUpdate(10, 100, 0.013609999999999999)).toMatchObject({ cost: { amount: 0.01361 } });
  expect(usageUpdate(10, 100, 0)).not.toHaveProperty("cost");
});
