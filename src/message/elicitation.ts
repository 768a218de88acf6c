/** A server's request to the user during a call: values in a form, or a visit to a URL. */
export type Elicitation = {
  /** The server's display name. */
  readonly server: string;
  readonly message: string;
  /** The call that it belongs to, if any. */
  readonly callId?: string | undefined;
} & (
  | { readonly mode: "form"; readonly form: ElicitationForm }
  | {
      readonly mode: "url";
      readonly url: string;
      /** Unique id; the completion notice names it. */
      readonly id: string;
    }
);

/** A flat form: each field is a string, a number, a boolean or a choice of strings, as in JSON schema. */
export interface ElicitationForm {
  readonly fields: Readonly<Record<string, ElicitationField>>;
  readonly required: readonly string[];
}

export interface ElicitationField {
  readonly type: string;
  readonly [key: string]: unknown;
}

export type ElicitedValue = string | number | boolean | string[];

export type ElicitationOutcome =
  /** A URL visit has no content. */
  | { readonly outcome: "accepted"; readonly content: Readonly<Record<string, ElicitedValue>> }
  /** The user declined; the work continues. */
  | { readonly outcome: "declined" }
  /** The user closed it, or the work was cancelled. */
  | { readonly outcome: "cancelled" }
  /** The editor cannot show it, or showing it failed. */
  | { readonly outcome: "unavailable" };

/** Asks the user. Never rejects; settles as cancelled when the signal aborts. */
export type Elicit = (elicitation: Elicitation, signal: AbortSignal) => Promise<ElicitationOutcome>;

/** The kinds of requests that servers may send to the user. */
export interface UserCapabilities {
  /** Whether the editor shows forms, and opens addresses. */
  readonly forms: boolean;
  readonly urls: boolean;
  /** Whether a user can be asked to let a server use the model. */
  readonly sampling: boolean;
}
