import type { AnyMessage, ErrorResponse } from "@agentclientprotocol/sdk/unstable";
import { isRecord } from "../base/text/record.ts";
import { invalidParams, messageLength, toOneLine } from "./errors.ts";
import { formatParamFaults } from "./param-faults.ts";

/**
 * The library words whatever a handler throws as "Internal error", what its schemas refuse as "Invalid params", and
 * repeats what it does not understand, however long; the person gets what was thrown, and which field was wrong.
 */
export function clarifyError(message: AnyMessage): AnyMessage {
  return "error" in message ? { ...message, error: clarify(message.error) } : message;
}

function clarify(error: ErrorResponse): ErrorResponse {
  const { code, message, data } = error;
  if (code === -32602) return formatInvalidParams(data) ?? error;
  if (code === -32603 && isRecord(data) && typeof data.details === "string" && data.details.trim() !== "")
    return { ...error, message: toOneLine(data.details) };
  const isRepeated = code === -32600 || message.length > messageLength;
  return isRepeated ? { code, message: toOneLine(message) } : error;
}

/** What the library's schemas say of params, a tree of what is wrong by field; undefined for what is none. */
function formatInvalidParams(tree: unknown): ErrorResponse | undefined {
  const words = formatParamFaults(tree);
  return words === undefined ? undefined : invalidParams(words).toErrorResponse();
}
