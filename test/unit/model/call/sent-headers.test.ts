import { expect, test } from "vitest";
import { silentLog } from "../../../../src/base/log.ts";
import { callModel } from "../../../../src/model/call/call-model.ts";
import { describeModel } from "../../../../src/model/catalog/catalog.ts";
import { Wires } from "../../../../src/model/wires/wires.ts";

const ref = { provider: "anthropic", model: "claude-sonnet-5-5" };
const model = describeModel(ref, { known: undefined, api: "messages" });
const tool = { name: "read", description: "Reads", schema: { type: "object", properties: {} } };

/** Returns the beta header of a request over Messages. */
async function sentBeta(headers: Record<string, string>): Promise<string | undefined> {
  let sent: string | undefined;
  const wires = new Wires((_, request) => {
    sent = request.headers["anthropic-beta"];
    return Promise.reject(new Error("nothing is sent"));
  });
  const baseURL = "https://anthropic.invalid/v1";
  const { provider, model: modelId } = ref;
  const endpoint = {
    provider,
    api: "messages",
    baseURL,
    headers,
    modelId,
    options: {},
    stallMs: 10_000,
  } as const;
  const request = {
    model,
    system: ["Be kind."],
    messages: [],
    tools: [tool],
    signal: new AbortController().signal,
  };
  await callModel(request, endpoint, { wires, log: silentLog }, () => {});
  return sent;
}

test.each([
  ["none", {}, undefined],
  ["a configured one", { "anthropic-beta": "context-1m-2025-08-07" }, "context-1m-2025-08-07"],
  [
    "the one for structured outputs only if it is configured",
    { "anthropic-beta": "structured-outputs-2025-11-13" },
    "structured-outputs-2025-11-13",
  ],
])("sends %s of the beta features of Messages", async (_, headers, beta) => {
  expect(await sentBeta(headers)).toBe(beta);
});
