import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isLong } from "../support/run-length.ts";
import { type Answer, answers } from "./answer.ts";
import { type Cut, cuts, Replay } from "./replay.ts";
import { type StreamShape, wires } from "./wire.ts";

let replay: Replay;
beforeAll(async () => {
  replay = await Replay.start();
});
afterAll(() => replay[Symbol.asyncDispose]());

/** All streams in the long run, otherwise one per answer, each split in each way. */
function cutsFor(at: number): [string, Cut][] {
  const all = Object.entries(cuts);
  return isLong ? all : all.filter((_, index) => index === at % all.length);
}

/** Calls are reported when complete, so parallel calls may arrive in another order. */
const inOrder = (calls: readonly { tool: string; input: unknown }[]) =>
  calls.map(({ tool, input }) => ({ tool, input })).sort((one, other) => one.tool.localeCompare(other.tool));

function expected({ tokens }: StreamShape, { text, reasoning, calls, end }: Answer, endsUnsaid: boolean) {
  const reason = calls.length > 0 ? "tool-calls" : endsUnsaid ? "stop" : end;
  return {
    text: text.join(""),
    reasoning: reasoning.join(""),
    calls: inOrder(calls),
    end: { type: "finish", reason, ...(tokens === undefined ? { estimated: true } : { tokens }) },
  };
}

/** Marks the end of a truncated answer, if a server reports it. */
const lengthMarks = ['"length"', '"max_tokens"', '"max_output_tokens"}'];

describe.each(wires)("$name", ({ shapes }) => {
  test.each(shapes)("$name", async (shape) => {
    for (const [at, answer] of answers.filter((one) => shape.canWrite(one)).entries()) {
      const stream = shape.write(answer);
      for (const [name, cut] of cutsFor(at)) {
        const what = `${answer.name}, ${name}`;
        const { end, calls, ...rest } = await replay.play(shape.api, stream, cut);
        const endsUnsaid = answer.end === "length" && !lengthMarks.some((mark) => stream.includes(mark));
        expect({
          what,
          ...rest,
          calls: inOrder(calls),
          end,
        }).toMatchObject({
          what,
          ...expected(shape, answer, endsUnsaid),
        });
        expect(new Set(calls.map(({ providerCallId }) => providerCallId)).size, what).toBe(calls.length);
        expect(calls.map(({ problem }) => problem).filter(Boolean), what).toEqual([]);
      }
    }
  });
});

test.each(wires.map((wire) => ({ ...wire, least: wire.api === "chat" ? 200 : 150 })))(
  "at least $least streams over $name are replayed",
  ({ shapes, least }) => {
    const streams = shapes.flatMap((shape) => answers.filter((answer) => shape.canWrite(answer)));
    expect(streams.length).toBeGreaterThanOrEqual(least);
  },
);
