import type { ContentBlock } from "@agentclientprotocol/sdk/unstable";
import protocolParams from "../../../schema/acp-v1-params.json" with { type: "json" };
import { ParamsReader, type Schema } from "./params-reader.ts";

const text: Schema = { type: "string" };
const content: Schema = { type: "array", items: { $ref: "#/$defs/ContentBlock" } };

/** Params of `_session/steering`. */
export interface SteeringParams {
  sessionId: string;
  prompt: ContentBlock[];
}

export const steeringParams = new ParamsReader<SteeringParams>(
  { type: "object", properties: { sessionId: text, prompt: content }, required: ["sessionId", "prompt"] },
  protocolParams.$defs,
);

/** Params of `session/inject` in the draft of version 2. `content` is read as that of a prompt. */
export interface InjectParams {
  sessionId: string;
  mode: string;
  content: unknown[];
  _meta?: Record<string, unknown> | null;
}

export const injectParams = new ParamsReader<InjectParams>({
  type: "object",
  properties: { sessionId: text, mode: text, content: { type: "array" } },
  required: ["sessionId", "mode", "content"],
});

/** Params of `session/revoke_inject`. */
export interface RevokeInjectionParams {
  sessionId: string;
  messageId: string;
}

export const revokeInjectionParams = new ParamsReader<RevokeInjectionParams>({
  type: "object",
  properties: { sessionId: text, messageId: text },
  required: ["sessionId", "messageId"],
});

/** Params of `session/replace_inject`. */
export interface ReplaceInjectionParams extends RevokeInjectionParams {
  content: ContentBlock[];
}

export const replaceInjectionParams = new ParamsReader<ReplaceInjectionParams>(
  {
    type: "object",
    properties: { sessionId: text, messageId: text, content },
    required: ["sessionId", "messageId", "content"],
  },
  protocolParams.$defs,
);

/** The content of a prompt in version 2, which also allows types that version 1 does not have. */
export const promptContent = new ParamsReader<{ prompt: ContentBlock[] }>(
  { type: "object", properties: { prompt: content }, required: ["prompt"] },
  protocolParams.$defs,
);

/** Params of `_session/rewind_points`. */
export const rewindPointsParams = new ParamsReader<{ sessionId: string }>({
  type: "object",
  properties: { sessionId: text },
  required: ["sessionId"],
});

/** Params of `_session/rewind`. */
export interface RewindParams {
  sessionId: string;
  messageId: string;
  mode?: string;
  dryRun?: boolean;
}

export const rewindParams = new ParamsReader<RewindParams>({
  type: "object",
  properties: { sessionId: text, messageId: text, mode: text, dryRun: { type: "boolean" } },
  required: ["sessionId", "messageId"],
});

/** Params of `session/rewind` in the draft of version 2. */
export const draftRewindParams = new ParamsReader<{ sessionId: string; toMessageId: string }>({
  type: "object",
  properties: { sessionId: text, toMessageId: text },
  required: ["sessionId", "toMessageId"],
});

/** Params of `session/edit_prompt` in the draft of version 2. `content` is read as that of a prompt. */
export interface EditPromptParams {
  sessionId: string;
  messageId: string;
  content: unknown[];
  _meta?: Record<string, unknown> | null;
}

export const editPromptParams = new ParamsReader<EditPromptParams>({
  type: "object",
  properties: { sessionId: text, messageId: text, content: { type: "array" } },
  required: ["sessionId", "messageId", "content"],
});

/** Params of `session/set_model`, which was removed from the protocol and is used by older clients. */
export const setModelParams = new ParamsReader<{ sessionId: string; modelId: string }>({
  type: "object",
  properties: { sessionId: text, modelId: text },
  required: ["sessionId", "modelId"],
});
