import type { AnyMessage, ErrorResponse } from "@agentclientprotocol/sdk/unstable";
import { isRecord } from "../base/text/record.ts";
import { invalidParams, messageLength, toOneLine } from "./errors.ts";
import { formatParamFaults } from "./param-faults.ts";

/**
 * Improves error messages of the SDK: "Internal error" becomes the message of the thrown error, "Invalid params" names
 * the invalid fields, and repeated input is shortened.
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

/** Formats the SDK's validation errors. Returns undefined if `tree` contains none. */
function formatInvalidParams(tree: unknown): ErrorResponse | undefined {
  const words = formatParamFaults(tree);
  return words === undefined ? undefined : invalidParams(words).toErrorResponse();
}
