import type { Elicit } from "./elicitation.ts";
import type { Attachment } from "./part.ts";

/** A request of an MCP server to the session's model. */
export interface Sampling {
  /** The server's display name. */
  readonly server: string;
  /** The server's name with a digest of its settings. "Always" applies to it. */
  readonly identity: string;
  readonly system?: string | undefined;
  readonly messages: readonly SamplingMessage[];
  readonly maxTokens: number;
  readonly temperature?: number | undefined;
  readonly stopSequences: readonly string[];
}

export interface SamplingMessage {
  readonly role: "user" | "assistant";
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

export type SamplingOutcome =
  | {
      readonly outcome: "answered";
      readonly text: string;
      readonly model: string;
      readonly end: "endTurn" | "maxTokens" | "stopSequence";
    }
  /** The reason is for the server and the model that called it. */
  | { readonly outcome: "refused"; readonly reason: string };

/** Asks the session's model if the user allows it. Never rejects. */
export type Sample = (sampling: Sampling, signal: AbortSignal) => Promise<SamplingOutcome>;

/** Answers the questions of MCP servers for one session. */
export interface ServerAnswers {
  readonly elicit: Elicit;
  readonly sample: Sample;
}
