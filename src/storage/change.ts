import { z } from "zod";
import checks from "../../schema/checks.json" with { type: "json" };
import { generatedCheck } from "../base/json-schema.ts";
import { fastValidator } from "../base/validator.ts";
import { messageIdSchema, partIdSchema, type MessageId } from "../message/ids.ts";
import { type Message, messageInfoSchema, messageSchema, sessionInfoSchema } from "../message/message.ts";
import { type Part, partSchema } from "../message/part.ts";

const seqSchema = z.number().int().nonnegative();

/** One line of a session's journal. `seq` only grows within a session; a merged delta has the last delta's `seq`. */
export const changeSchema = z.discriminatedUnion("type", [
  /** The first line. It is not a change; it holds the `seq` to continue from. */
  z.object({ type: z.literal("start"), seq: seqSchema }),
  z.object({ type: z.literal("message"), seq: seqSchema, info: messageInfoSchema }),
  z.object({ type: z.literal("part"), seq: seqSchema, messageId: messageIdSchema, part: partSchema }),
  z.object({
    type: z.literal("delta"),
    seq: seqSchema,
    messageId: messageIdSchema,
    partId: partIdSchema,
    delta: z.string(),
  }),
  z.object({ type: z.literal("remove"), seq: seqSchema, messageIds: z.array(messageIdSchema) }),
  /** A copy of the session's info, because its own file may be older. */
  z.object({ type: z.literal("session"), seq: seqSchema, info: sessionInfoSchema }),
]);
export type Change = z.infer<typeof changeSchema>;
export const storedChange = fastValidator(generatedCheck(checks, "change"), changeSchema);
type MessageChange = Extract<Change, { type: "message" }>;
type PartChange = Extract<Change, { type: "part" | "delta" }>;

/** A message's file: the message with all changes up to and including `seq`. */
export const storedMessageSchema = messageSchema.extend({ seq: seqSchema });
export const storedMessage = fastValidator(generatedCheck(checks, "message"), storedMessageSchema);
export type StoredMessage = Message & { seq: number };

export function messageIdsOf(change: Change): MessageId[] {
  if (change.type === "start" || change.type === "session") return [];
  if (change.type === "message") return [change.info.id];
  return change.type === "remove" ? change.messageIds : [change.messageId];
}

/** Applies the journal's changes to a message's file; undefined when the message was removed. */
export function replay(
  file: StoredMessage | undefined,
  changes: readonly Change[],
): StoredMessage | undefined {
  const newer = changes.filter((change) => change.seq > (file?.seq ?? 0));
  const removal = newer.findLastIndex((change) => change.type === "remove");
  const draft = new Draft();
  for (const change of newer.slice(removal + 1)) draft.add(change);
  return draft.applyTo(removal === -1 ? file : undefined);
}

/** Changes of one message that its file does not contain yet, merged per part. */
export class Draft {
  #info: MessageChange | undefined;
  readonly #parts = new Map<string, PartChange>();
  #seq = 0;

  add(change: Change): void {
    this.#seq = Math.max(this.#seq, change.seq);
    if (change.type === "message") this.#info = change;
    // A copy, because both the caller and this draft append to their part.
    else if (change.type === "part") this.#parts.set(change.part.id, { ...change, part: { ...change.part } });
    else if (change.type === "delta") this.#append(change);
  }

  /** Returns the changes in an order that rebuilds the same message. */
  changes(): Change[] {
    return [...(this.#info ? [this.#info] : []), ...this.#parts.values()];
  }

  /** Returns undefined when neither the file nor a change contains the message's info. */
  applyTo(file: StoredMessage | undefined): StoredMessage | undefined {
    const info = this.#info?.info ?? file?.info;
    if (!info) return undefined;
    const parts = new Map<string, Part>(file?.parts.map((part) => [part.id, part]));
    for (const [partId, change] of this.#parts) {
      const part = change.type === "part" ? change.part : appendDelta(parts.get(partId), change.delta);
      if (part) parts.set(partId, part);
    }
    return { seq: Math.max(this.#seq, file?.seq ?? 0), info, parts: [...parts.values()] };
  }

  #append(change: Extract<Change, { type: "delta" }>): void {
    const earlier = this.#parts.get(change.partId);
    if (!earlier) this.#parts.set(change.partId, { ...change });
    else if (earlier.type === "delta") earlier.delta += change.delta;
    else if (isText(earlier.part)) earlier.part.text += change.delta;
    if (earlier) earlier.seq = change.seq;
  }
}

type Text = Extract<Part, { type: "text" | "reasoning" }>;

function isText(part: Part): part is Text {
  return part.type === "text" || part.type === "reasoning";
}

function appendDelta(part: Part | undefined, delta: string): Part | undefined {
  return part && isText(part) ? { ...part, text: part.text + delta } : part;
}
