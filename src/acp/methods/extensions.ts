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

/** The content of a prompt in version 2, which also allows types that version 1 does not have. */
export const promptContent = new ParamsReader<{ prompt: ContentBlock[] }>(
  { type: "object", properties: { prompt: content }, required: ["prompt"] },
  protocolParams.$defs,
);

/** Params of `session/set_model`, which was removed from the protocol and is used by older clients. */
export const setModelParams = new ParamsReader<{ sessionId: string; modelId: string }>({
  type: "object",
  properties: { sessionId: text, modelId: text },
  required: ["sessionId", "modelId"],
});
