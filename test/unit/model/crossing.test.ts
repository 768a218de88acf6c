import { describe, expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import type { Api } from "../../../src/config/api.ts";
import { newMessageId, newPartId, newSessionId } from "../../../src/message/ids.ts";
import type { Message, ModelRef } from "../../../src/message/message.ts";
import type { Part, ProviderMetadata } from "../../../src/message/part.ts";
import { callModel } from "../../../src/model/call/call-model.ts";
import { describeModel } from "../../../src/model/catalog/catalog.ts";
import { Wires } from "../../../src/model/wires/wires.ts";

const sessionId = newSessionId();
type PartInput<P = Part> = P extends Part ? Omit<P, "id"> : never;
const part = (fields: PartInput): Part => ({ id: newPartId(), ...fields });
const image = { mime: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" };

interface Source {
  readonly api: Api;
  readonly ref: ModelRef;
  /** The host of its base URL. */
  readonly host?: string;
}

const hostOf = ({ ref, host = `${ref.provider}.invalid` }: Source) => host;

const sources = {
  claude: { api: "messages", ref: { provider: "anthropic", model: "claude-sonnet-5-5" } },
  gpt: { api: "responses", ref: { provider: "openai", model: "gpt-5.6-sol" } },
  routed: { api: "chat", ref: { provider: "openrouter", model: "anthropic/claude-sonnet-5" } },
  gemini: { api: "chat", ref: { provider: "google", model: "gemini-3-pro-preview" } },
  qwen: { api: "chat", ref: { provider: "ollama", model: "qwen3:8b" } },
} as const satisfies Record<string, Source>;

/**
 * An answer with a thought, a text and a call, and with all data that its provider wants to receive again.
 */
function answer(
  source: Source,
  data: {
    thought?: ProviderMetadata["data"];
    call?: ProviderMetadata["data"];
    end?: ProviderMetadata["data"];
  },
): Message {
  const { api, ref } = source;
  const from = (data: ProviderMetadata["data"] | undefined) =>
    data && { providerMetadata: { ...ref, api, host: hostOf(source), data } };
  const tokens = { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } };
  return {
    info: {
      id: newMessageId(),
      sessionId,
      role: "assistant",
      parentId: newMessageId(),
      time: { created: 1 },
      agent: "build",
      model: ref,
      cost: 0,
      tokens,
    },
    parts: [
      part({ type: "step-start" }),
      part({ type: "reasoning", text: `${ref.provider} thinks`, ...from(data.thought) }),
      part({ type: "text", text: `${ref.provider} speaks` }),
      part({
        type: "tool",
        callId: `own-${ref.provider}`,
        providerCallId: `${ref.provider}.call.${"x".repeat(70)}`,
        tool: "read",
        state: {
          status: "completed",
          input: { path: "a" },
          output: "seen",
          attachments: [image],
          time: { start: 1, end: 2 },
        },
        ...from(data.call),
      }),
      part({ type: "step-finish", reason: "tool-calls", tokens, cost: 0, ...from(data.end) }),
    ],
  };
}

/** The data that only its own provider may receive again. */
const marks: Readonly<Record<keyof typeof sources, readonly string[]>> = {
  claude: ["SIGNATURE", "anthropic thinks"],
  gpt: ["SEALED", "openai thinks"],
  routed: ["ROUTED"],
  gemini: ["SIGNED-CALL"],
  qwen: ["ollama thinks"],
};

const messages: Message[] = [
  {
    info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
    parts: [part({ type: "text", text: "Go on." })],
  },
  answer(sources.claude, { thought: { signature: "SIGNATURE" } }),
  answer(sources.gpt, { thought: { itemId: "rs_SERVER", reasoningEncryptedContent: "SEALED" } }),
  answer(sources.routed, { end: { reasoning_details: [{ type: "reasoning.text", signature: "ROUTED" }] } }),
  answer(sources.gemini, { call: { thoughtSignature: "SIGNED-CALL" } }),
  answer(sources.qwen, { thought: { field: "reasoning" } }),
];

/** Returns the body of a request that a model gets for the whole conversation. */
async function requestTo(source: Source): Promise<string> {
  const { api, ref } = source;
  let sent = "";
  const wires = new Wires((_, { body = [] }) => {
    sent = Buffer.concat(body).toString();
    return Promise.reject(new Error("nothing is sent"));
  });
  const model = describeModel(ref, {
    known: undefined,
    api,
    config: { reasoning: true, modalities: { input: ["text", "image"] } },
  });
  const { signal } = new AbortController();
  const endpoint = {
    provider: ref.provider,
    api,
    baseURL: `https://${hostOf(source)}/v1`,
    headers: {},
    modelId: ref.model,
    options: {},
    stallMs: 10_000,
  };
  const request = { model, system: [], messages, tools: [], signal };
  expect(await callModel(request, endpoint, { wires, log: silentLog }, () => {})).toMatchObject({
    type: "failed",
  });
  return sent;
}

const all = Object.values(marks).flat();

describe("a change of model sends a provider's data to nobody else", () => {
  test.each(Object.entries(sources).map(([name, source]) => ({ name, source })))(
    "$name",
    async ({ name, source }) => {
      const body = await requestTo(source);
      const own = Object.entries(marks).flatMap(([from, words]) => (from === name ? words : []));
      expect(all.filter((mark) => body.includes(mark))).toEqual(own);
      expect(body).not.toContain("rs_SERVER");
    },
  );

  test.each<[string, Source]>([
    [
      "another model of the provider",
      { ...sources.claude, ref: { provider: "anthropic", model: "claude-haiku-5" } },
    ],
    ["the same model over another API", { ...sources.gpt, api: "chat" }],
    ["the same provider at another address", { ...sources.claude, host: "gateway.invalid" }],
    ["the same chat model at another address", { ...sources.qwen, host: "gateway.invalid" }],
    ["a new provider", { api: "messages", ref: { provider: "else", model: "claude-sonnet-5-5" } }],
  ])("%s", async (_, source) => {
    const body = await requestTo(source);
    expect(all.filter((mark) => body.includes(mark))).toEqual([]);
  });

  test.each(Object.entries(sources).map(([name, source]) => ({ name, source })))(
    "texts, calls, results and images reach $name with ids that it accepts",
    async ({ source }) => {
      const body = await requestTo(source);
      for (const { ref } of Object.values(sources)) expect(body).toContain(`${ref.provider} speaks`);
      expect(body.match(/iVBORw0KGgo=/g)).toHaveLength(5);
      const ids = [...body.matchAll(/"(?:tool_call_id|tool_use_id|call_id)":"([^"]*)"/g)].map(([, id]) => id);
      expect(new Set(ids).size).toBe(5);
      for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    },
  );
});
