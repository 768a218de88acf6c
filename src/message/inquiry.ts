/** Questions of the model to the user, with answers to choose from. */
export interface Inquiry {
  /** The call that asks. */
  readonly callId: string;
  /** Name of the tool that asks. */
  readonly tool: string;
  readonly questions: readonly InquiryQuestion[];
}

export interface InquiryQuestion {
  readonly question: string;
  /** A few words that name the question. */
  readonly header: string;
  /** Labels differ from each other. */
  readonly options: readonly { readonly label: string; readonly description: string }[];
  /** Whether several options may be chosen together. */
  readonly multiple: boolean;
}

/** The user's choice and text; both empty when the question was skipped. */
export interface InquiryAnswer {
  readonly chosen: readonly string[];
  readonly custom?: string;
}

export type InquiryOutcome =
  /** One answer for each question, in their order. */
  | { outcome: "answered"; answers: readonly InquiryAnswer[] }
  /** The user declined to answer; the work continues. */
  | { outcome: "declined" }
  /** The user closed the question; the turn stops. */
  | { outcome: "closed" }
  /** The client or the signal cancelled the turn. */
  | { outcome: "cancelled" }
  /** The editor cannot show it, or showing it failed. */
  | { outcome: "unavailable"; problem?: string };

/** Asks the user. Never rejects; settles as cancelled when the signal aborts. */
export type Inquire = (inquiry: Inquiry, signal: AbortSignal) => Promise<InquiryOutcome>;
