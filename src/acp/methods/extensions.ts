import { ParamsReader, type Schema } from "./params-reader.ts";

const text: Schema = { type: "string" };

/** Params of `_session/steering`. The blocks are validated by `parseContent`. */
export interface SteeringParams {
  sessionId: string;
  prompt: unknown[];
}

export const steeringParams = new ParamsReader<SteeringParams>({
  type: "object",
  properties: { sessionId: text, prompt: { type: "array" } },
  required: ["sessionId", "prompt"],
});

/** Params of `session/set_model`, which was removed from the protocol and is used by older clients. */
export const setModelParams = new ParamsReader<{ sessionId: string; modelId: string }>({
  type: "object",
  properties: { sessionId: text, modelId: text },
  required: ["sessionId", "modelId"],
});
