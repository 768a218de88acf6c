import { v7 as uuidv7 } from "uuid";
import { z } from "zod";

/** Ids are a prefix and a version 7 UUID without dashes: opaque to clients, sortable by creation time. */
const idSchema = <Prefix extends string>(prefix: Prefix) =>
  z.custom<`${Prefix}_${string}`>((value) => isId(prefix, value), {
    error: `expected an id that begins with "${prefix}_"`,
  });

const isId = (prefix: string, value: unknown): boolean =>
  typeof value === "string" && value.startsWith(`${prefix}_`) && safeSuffix.test(value.slice(4));

/** Only letters and digits, because ids are used as file names. */
const safeSuffix = /^[0-9A-Za-z]{1,64}$/;

export const sessionIdSchema = idSchema("ses");
export const messageIdSchema = idSchema("msg");
export const partIdSchema = idSchema("prt");

export type SessionId = z.infer<typeof sessionIdSchema>;
export type MessageId = z.infer<typeof messageIdSchema>;
export type PartId = z.infer<typeof partIdSchema>;

export const newSessionId = (): SessionId => `ses_${sortable()}`;
export const newMessageId = (): MessageId => `msg_${sortable()}`;
export const newPartId = (): PartId => `prt_${sortable()}`;
/** Identifies one permission question; not stored. */
export const newRequestId = (): string => `per_${sortable()}`;

/** Returns a new id that sorts after `last`, even when the clock was set back. */
export function messageIdAfter(last: MessageId): MessageId {
  const id = newMessageId();
  return id > last ? id : `msg_${removeDashes(uuidv7({ msecs: timeOf(last) + 1 }))}`;
}

export const isSessionId = (value: unknown): value is SessionId => isId("ses", value);
export const isMessageId = (value: unknown): value is MessageId => isId("msg", value);

function sortable(): string {
  return removeDashes(uuidv7());
}

function removeDashes(uuid: string): string {
  return uuid.replaceAll("-", "");
}

/**
 * Returns the creation time of an id in milliseconds since 1970: the first 48 bits of a version 7 UUID (RFC 9562,
 * 5.7).
 */
export function timeOf(id: MessageId | SessionId): number {
  return Number.parseInt(id.slice("msg_".length, "msg_".length + 12), 16);
}
