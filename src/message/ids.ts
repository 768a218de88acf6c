import { v7 as uuidv7 } from "uuid";
import { z } from "zod";

/** Ids are a prefix and a version 7 UUID without dashes: opaque to clients, sortable by the time of their making. */
const idSchema = <Prefix extends string>(prefix: Prefix) =>
  z.custom<`${Prefix}_${string}`>((value) => isId(prefix, value), {
    error: `expected an id that begins with "${prefix}_"`,
  });

const isId = (prefix: string, value: unknown): boolean =>
  typeof value === "string" && value.startsWith(`${prefix}_`) && safeRest.test(value.slice(4));

/** Ids become file names, so nothing but letters and digits may follow the prefix. */
const safeRest = /^[0-9A-Za-z]{1,64}$/;

export const sessionIdSchema = idSchema("ses");
export const messageIdSchema = idSchema("msg");
export const partIdSchema = idSchema("prt");

export type SessionId = z.infer<typeof sessionIdSchema>;
export type MessageId = z.infer<typeof messageIdSchema>;
export type PartId = z.infer<typeof partIdSchema>;

export const newSessionId = (): SessionId => `ses_${sortable()}`;
export const newMessageId = (): MessageId => `msg_${sortable()}`;
export const newPartId = (): PartId => `prt_${sortable()}`;
/** Names one question about permissions; nothing is stored under it. */
export const newRequestId = (): string => `per_${sortable()}`;

/** A new id that sorts behind `last`, also when the clock was set back since that was made. */
export function messageIdAfter(last: MessageId): MessageId {
  const id = newMessageId();
  return id > last ? id : `msg_${withoutDashes(uuidv7({ msecs: timeOf(last) + 1 }))}`;
}

export const isSessionId = (value: unknown): value is SessionId => isId("ses", value);
export const isMessageId = (value: unknown): value is MessageId => isId("msg", value);
export const isPartId = (value: unknown): value is PartId => isId("prt", value);

function sortable(): string {
  return withoutDashes(uuidv7());
}

function withoutDashes(uuid: string): string {
  return uuid.replaceAll("-", "");
}

/** When an id was made, in milliseconds since 1970: the first 48 bits of a version 7 UUID (RFC 9562, 5.7). */
export function timeOf(id: MessageId | SessionId): number {
  return Number.parseInt(id.slice("msg_".length, "msg_".length + 12), 16);
}
