/** What a server asks the person for while it works: values in a form, or a visit to an address. */
export type Elicitation = {
  /** Who asks, as the person knows it. */
  readonly server: string;
  readonly message: string;
  /** The call that it belongs to, where it is one. */
  readonly callId?: string | undefined;
} & (
  | { readonly mode: "form"; readonly form: ElicitationForm }
  | {
      readonly mode: "url";
      readonly url: string;
      /** Unique among all that is asked; whoever is done with it is told by it. */
      readonly id: string;
    }
);

/** Flat: each field holds a text, a number, a yes or no, or a choice of texts, as JSON schema has it. */
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
  /** A visit to an address has no content. */
  | { readonly outcome: "accepted"; readonly content: Readonly<Record<string, ElicitedValue>> }
  /** The person does not want to; the work goes on without. */
  | { readonly outcome: "declined" }
  /** The person closed it, or the work was cancelled. */
  | { readonly outcome: "cancelled" }
  /** The editor has no way to ask this, or it failed. */
  | { readonly outcome: "unavailable" };

/** Puts it to the person. Never rejects; settles as cancelled when the signal aborts. */
export type Elicit = (elicitation: Elicitation, signal: AbortSignal) => Promise<ElicitationOutcome>;

/** Which kinds the editor can show. */
export interface ElicitationAbilities {
  readonly forms: boolean;
  readonly urls: boolean;
}
