import { describe, expect, test } from "vitest";
import {
  collectBills,
  configFor,
  playReads,
  pricedFiles,
  type PricedWay,
  pricedWays,
  computePrice,
} from "../../support/model/priced-session.ts";
import { type Bill, countTokensIn } from "../../support/model/prompt-cache.ts";
import { story } from "../../support/editor/story.ts";

/** Returns the prompt cost of a session, including its title. */
async function play(way: PricedWay, readsOfSteps: readonly number[]): Promise<readonly Bill[]> {
  const count = readsOfSteps.reduce((sum, reads) => sum + reads, 0);
  let bills: readonly Bill[] = [];
  await story(
    { files: pricedFiles(count), initialize: false },
    async ({ editor, model, repository, home }) => {
      const config = JSON.stringify(configFor(way, model.url));
      await home.write({ ".config/fairlead/fairlead.json": config });
      await editor.initialize();
      const { sessionId } = await editor.newSession();
      await playReads(model, repository.path, (text) => editor.prompt(sessionId, text), readsOfSteps);
      await model.titleRequest(1);
      bills = collectBills(model, way);
    },
  );
  return bills;
}

describe.each(pricedWays)("the prompts of $name", (way) => {
  test("come from the cache for at least 80 percent in a session of 20 reads", async () => {
    const bills = await play(
      way,
      Array.from({ length: 20 }, () => 1),
    );
    const { calls, cachedShare, shareOfFull } = computePrice(bills, way.price);
    expect(calls).toBe(23);
    expect(cachedShare).toBeGreaterThanOrEqual(0.8);
    expect(shareOfFull).toBeLessThanOrEqual(0.3);
  });

  test("find the previous prompt in the cache after 15 parallel reads", async () => {
    const bills = await play(way, [1, 15, 1]);
    // The last one is for the title.
    for (const [at, bill] of bills.slice(1, -1).entries()) {
      const before = bills[at];
      if (before === undefined) continue;
      expect(bill.read / countTokensIn(before), `request ${at + 2}`).toBeGreaterThanOrEqual(0.9);
    }
  });
});
