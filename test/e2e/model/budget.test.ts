import { describe, expect, test } from "vitest";
import type { ModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/**
 * A price of a dollar per 100,000 input tokens. The base URL is in the home's own configuration, into which
 * this is merged.
 */
const priced = {
  provider: {
    test: {
      models: { scripted: { cost: { input: 10, output: 0 }, limit: { context: 1e6, output: 1_000 } } },
    },
  },
};
const env = (limits: Record<string, number>) => ({
  FAIRLEAD_CONFIG_CONTENT: JSON.stringify({ ...priced, max_cost: limits }),
});

/** A model that calls tools endlessly and costs a dollar with each call. */
function spendthrift(model: ModelServer): void {
  let count = 0;
  model.otherwise(() => [
    reply.call("read", { filePath: `file${++count}.txt` }),
    reply.usage({ promptTokens: 100_000, completionTokens: 1 }),
  ]);
}

describe("a cost limit", () => {
  test("asks at the turn's limit, and ends the turn when the user refuses", async () => {
    await story({ env: env({ turn: 2 }), permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      spendthrift(model);
      const { stopReason } = await editor.prompt(sessionId, "Spend");
      expect([stopReason, model.requests.length]).toEqual(["max_turn_requests", 2]);
      expect(toolCalls(editor.updates(sessionId)).at(-1)).toMatchObject({
        title: "This turn has cost $2.00. Continue for another $2.00?",
        status: "failed",
      });
    });
  });

  test("continues for the same amount each time the user agrees", async () => {
    let requested = 0;
    const permission = () => (++requested < 3 ? "allow_once" : "reject_once");
    await story({ env: env({ session: 1 }), permission }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      spendthrift(model);
      const { stopReason } = await editor.prompt(sessionId, "Spend");
      expect([stopReason, requested, model.requests.length]).toEqual(["max_turn_requests", 3, 3]);
      const usage = editor.updates(sessionId, "usage_update").at(-1);
      expect(usage?.cost, "the title counts too").toEqual({ amount: expect.closeTo(3, 1), currency: "USD" });
    });
  });
});
