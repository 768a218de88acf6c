import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ZodType } from "zod";
// The library does not export its validators, which it generates from the same schema.
import * as stable from "../../node_modules/@agentclientprotocol/sdk/dist/v1/unstable/schema/zod.gen.js";
import * as draft from "../../node_modules/@agentclientprotocol/sdk/dist/v2/unstable/schema/zod.gen.js";
import stableParams from "../../schema/acp-v1-params.json" with { type: "json" };
import draftParams from "../../schema/acp-v2-params.json" with { type: "json" };
import type { ProtocolParams } from "../../src/acp/methods/method-table.ts";
import { ParamsReader } from "../../src/acp/methods/params-reader.ts";
import { isRecord } from "../../src/base/text/record.ts";

const text = { type: "text", text: "Hi", annotations: { audience: ["user", "nobody"], priority: 1 } };
const image = { type: "image", data: "AAAA", mimeType: "image/png", uri: null };
const link = { type: "resource_link", uri: "file:///a", name: "a", size: 5 };
const embedded = { type: "resource", resource: { uri: "file:///a", text: "x", mimeType: "text/plain" } };
const blob = { type: "resource", resource: { uri: "file:///b", blob: "AAAA" } };
const prompt = { sessionId: "s", prompt: [text, image, link, embedded, blob] };
const pair = { name: "K", value: "v" };
const http = { type: "http", name: "h", url: "http://x", headers: [pair] };
const stdio = { name: "l", command: "c", args: ["a"], env: [pair] };
const systemPrompt = { mode: "append", content: [text] };
const place = { cwd: "/a", additionalDirectories: ["/b"], systemPrompt, _meta: { a: 1 } };
const stored = { ...place, sessionId: "s", mcpServers: [http, stdio, { ...http, type: "sse" }] };
const draftStored = {
  ...place,
  sessionId: "s",
  mcpServers: [http, { ...stdio, type: "stdio" }, { type: "_own" }],
};
const provider = { providerId: "p", apiType: "openai", baseUrl: "http://x", headers: { a: "b" } };
const list = { cwd: "/a", cursor: "c", archived: "only" };
const option = { sessionId: "s", configId: "c", type: "boolean", value: true };
const capabilities = { elicitation: { form: {}, url: {} }, auth: { terminal: {} } };
const clientCapabilities = { fs: { readTextFile: true }, session: { notices: {} }, auth: { terminal: true } };

const stableExamples: Readonly<Record<string, [ZodType, object]>> = {
  initialize: [stable.zInitializeRequest, { protocolVersion: 1, clientCapabilities, clientInfo: pair }],
  authenticate: [stable.zAuthenticateRequest, { methodId: "m" }],
  "providers/set": [stable.zSetProviderRequest, provider],
  "session/new": [stable.zNewSessionRequest, stored],
  "session/load": [stable.zLoadSessionRequest, stored],
  "session/resume": [stable.zResumeSessionRequest, stored],
  "session/fork": [stable.zForkSessionRequest, stored],
  "session/list": [stable.zListSessionsRequest, list],
  "session/set_mode": [stable.zSetSessionModeRequest, { sessionId: "s", modeId: "m" }],
  "session/set_config_option": [stable.zSetSessionConfigOptionRequest, option],
  "session/prompt": [stable.zPromptRequest, prompt],
  "session/cancel": [stable.zCancelNotification, { sessionId: "s" }],
};

const draftExamples: Readonly<Record<string, [ZodType, object]>> = {
  initialize: [
    draft.zInitializeRequest,
    { protocolVersion: 2, info: { name: "n", version: "1" }, capabilities },
  ],
  "auth/login": [draft.zLoginAuthRequest, { methodId: "m" }],
  "session/new": [draft.zNewSessionRequest, draftStored],
  "session/resume": [draft.zResumeSessionRequest, { ...draftStored, replayFrom: { type: "start" } }],
  "session/list": [draft.zListSessionsRequest, list],
  "session/set_config_option": [draft.zSetSessionConfigOptionRequest, option],
  "session/prompt": [draft.zPromptRequest, { ...prompt, prompt: [...prompt.prompt, { type: "_own", x: 1 }] }],
  "tool_call/cancel": [draft.zCancelToolCallRequest, { sessionId: "s", toolCallId: "t" }],
};

/** Values that are invalid for most fields. */
const odd = fc.constantFrom<unknown>(
  null,
  undefined,
  0,
  1.5,
  -1,
  "",
  "text",
  "http",
  true,
  [],
  [1],
  {},
  { type: "image" },
);
const steps = fc.array(fc.nat(), { maxLength: 5 });

/** Replaces the value at the end of a path through the fields. */
function replace(value: unknown, [step, ...rest]: readonly number[], by: unknown): unknown {
  const keys = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const key = step === undefined ? undefined : keys[step % keys.length];
  if (key === undefined) return by;
  if (Array.isArray(value))
    return value.map((item, at) => (String(at) === key ? replace(item, rest, by) : item));
  return isRecord(value) ? { ...value, [key]: replace(value[key], rest, by) } : by;
}

function read({ methods, $defs }: ProtocolParams, method: string, params: unknown) {
  const schema = methods[method];
  if (schema === undefined) throw new Error(`${method} has no schema`);
  try {
    return { success: true, data: new ParamsReader(schema, $defs).read(params) };
  } catch {
    return { success: false };
  }
}

describe.each<[string, ProtocolParams, typeof stableExamples]>([
  ["version 1", stableParams, stableExamples],
  ["version 2", draftParams, draftExamples],
])("the params of %s", (_, params, examples) => {
  test.each(Object.entries(examples))(
    "%s are read as the library reads them",
    (method, [validator, example]) => {
      expect(read(params, method, example)).toMatchObject({ success: true });
      fc.assert(
        fc.property(steps, odd, (path, by) => {
          const given = replace(example, path, by);
          const own = read(params, method, given);
          const { success, data } = validator.safeParse(given);
          expect(own.success).toBe(success);
          // The library drops fields that it does not know.
          if (success) expect(own.data).toMatchObject(JSON.parse(JSON.stringify(data)));
        }),
      );
    },
  );
});
