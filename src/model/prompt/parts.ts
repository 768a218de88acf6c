import type { Part, ProviderMetadata } from "../../message/part.ts";
import type { Prompt, WireCall } from "../wires/wire.ts";

/** The inputs of a prompt besides the transcript. */
export type PromptOptions = Pick<WireCall, "model" | "owner" | "quirks" | "isRefused">;

export type AssistantPart = Extract<Prompt[number], { role: "assistant" }>["content"][number];
export type Data = NonNullable<AssistantPart["providerOptions"]>[string];

const ownerKeys = ["provider", "model", "api", "host"] as const;

/** Returns the provider's data of a part if it came from the model, API and host of the request. */
export function ownData(
  { providerMetadata: from }: Part & { providerMetadata?: ProviderMetadata | undefined },
  { owner }: PromptOptions,
): Data | undefined {
  const isOwn = ownerKeys.every((key) => from?.[key] === owner[key]);
  return isOwn ? from?.data : undefined;
}

/** Adds data of the provider to a part, under the name that the SDK reads. */
export function withData<P extends AssistantPart>(part: P, name: string, data: Data | undefined): P {
  return data === undefined ? part : { ...part, providerOptions: { [name]: data } };
}

export const text = (text: string) => ({ type: "text" as const, text });
export const reasoning = (text: string) => ({ type: "reasoning" as const, text });
