import type { JsonObject } from "../json.ts";
import type { Direction, WireEntry, WireId } from "./wire-log.ts";

/**
 * A connection's messages, with each response linked to its request. `by` is the direction of the message.
 */
export type Traffic = Call | Answer | Notice;

export interface Call {
  type: "call";
  by: Direction;
  order: number;
  id: WireId;
  method: string;
  params: JsonObject;
}

export interface Answer {
  type: "answer";
  by: Direction;
  order: number;
  id: WireId;
  /** Undefined for a response without a request. */
  call: Call | undefined;
  result: unknown;
  error: JsonObject | undefined;
}

export interface Notice {
  type: "notice";
  by: Direction;
  order: number;
  method: string;
  params: JsonObject;
}

export function parseTraffic(entries: readonly WireEntry[]): Traffic[] {
  const open: Record<Direction, Map<WireId, Call[]>> = { toAgent: new Map(), fromAgent: new Map() };
  return entries.flatMap(({ order, direction, message }): Traffic[] => {
    if (message === undefined) return [];
    const base = { by: direction, order };
    if (message.kind === "notification") {
      return [{ type: "notice", ...base, method: message.method, params: message.params }];
    }
    if (message.kind === "request") {
      const call: Call = {
        type: "call",
        ...base,
        id: message.id,
        method: message.method,
        params: message.params,
      };
      open[direction].set(call.id, [...(open[direction].get(call.id) ?? []), call]);
      return [call];
    }
    const call = open[direction === "toAgent" ? "fromAgent" : "toAgent"].get(message.id)?.shift();
    return [{ type: "answer", ...base, id: message.id, call, result: message.result, error: message.error }];
  });
}

/** Returns the session that a message names. */
export function getSessionId(traffic: Traffic): string | undefined {
  const params = traffic.type === "answer" ? traffic.call?.params : traffic.params;
  return typeof params?.sessionId === "string" ? params.sessionId : undefined;
}

export const isUpdate = (traffic: Traffic): traffic is Notice =>
  traffic.type === "notice" && traffic.method === "session/update";
