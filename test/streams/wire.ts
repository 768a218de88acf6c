import type { Tokens } from "../../src/message/part.ts";
import type { Answer } from "./answer.ts";
import { canWrite, type ChatForm, writeChat } from "./chat-form.ts";
import { hostedForms } from "./hosted-forms.ts";
import { serverForms } from "./server-forms.ts";

/** One server's way to stream answers over a wire. */
export interface StreamShape {
  readonly name: string;
  /** Undefined where it reports no usage. */
  readonly tokens: Tokens | undefined;
  readonly hasTags: boolean;
  canWrite(answer: Answer): boolean;
  write(answer: Answer): string;
}

/** An API over which models stream. */
export interface Wire {
  readonly name: string;
  readonly shapes: readonly StreamShape[];
}

const toShape = (form: ChatForm): StreamShape => ({
  name: form.provider,
  tokens: form.usage?.tokens,
  hasTags: form.hasTags ?? false,
  canWrite: (answer) => canWrite(form, answer),
  write: (answer) => writeChat(form, answer),
});

export const wires: readonly Wire[] = [
  { name: "chat completions", shapes: [...hostedForms, ...serverForms].map(toShape) },
];
