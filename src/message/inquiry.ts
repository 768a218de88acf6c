/** Questions of the model to the person, with answers to choose from. */
export interface Inquiry {
  /** The call that asks. */
  readonly callId: string;
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

/** What the person chose and wrote; neither where the question was left open. */
export interface InquiryAnswer {
  readonly chosen: readonly string[];
  readonly custom?: string;
}

export type InquiryOutcome =
  /** One answer for each question, in their order. */
  | { outcome: "answered"; answers: readonly InquiryAnswer[] }
  /** The person does not want to answer; the work goes on without. */
  | { outcome: "declined" }
  /** The person closed the question: the work stops here. */
  | { outcome: "closed" }
  /** The turn is cancelled, as the client says or as the signal does. */
  | { outcome: "cancelled" }
  /** The editor has no way to ask this, or it failed. */
  | { outcome: "unavailable"; problem?: string };

/** Puts questions to the person. Never rejects; settles as cancelled when the signal aborts. */
export type Inquire = (inquiry: Inquiry, signal: AbortSignal) => Promise<InquiryOutcome>;
