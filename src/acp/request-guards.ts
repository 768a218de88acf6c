import type { ListSessionsRequest, PromptRequest } from "@agentclientprotocol/sdk/unstable";
import { hasOnly } from "../base/validator.ts";
import { isStringArray } from "../base/text/record.ts";
import type { SessionParams } from "./methods/lifecycle.ts";

// Quick checks for simple requests, which make the protocol's schemas unnecessary.

export type RequestId = string | number;
export type PlainPrompt = Pick<PromptRequest, "sessionId" | "prompt">;

export function isRequestId(id: unknown): id is RequestId {
  return typeof id === "string" || Number.isInteger(id);
}

/** Params without MCP servers and system prompt. */
export function isPlainNewSession(params: unknown): params is SessionParams {
  if (typeof params !== "object" || params === null || "systemPrompt" in params) return false;
  if (!("cwd" in params) || typeof params.cwd !== "string") return false;
  if (!("mcpServers" in params) || !Array.isArray(params.mcpServers) || params.mcpServers.length > 0)
    return false;
  return !("additionalDirectories" in params) || isStringArray(params.additionalDirectories);
}

/** Params without MCP servers and system prompt, for a stored session. */
export function isPlainStoredSession(params: unknown): params is SessionParams & { sessionId: string } {
  return isPlainNewSession(params) && "sessionId" in params && typeof params.sessionId === "string";
}

/** Params that do not ask for archived sessions. */
export function isPlainList(params: unknown): params is Pick<ListSessionsRequest, "cwd" | "cursor"> {
  return hasOnly(params, ["cwd", "cursor"]) && [params.cwd, params.cursor].every(isTextOrAbsent);
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

/** Params with text blocks only. */
export function isPlainPrompt(params: unknown): params is PlainPrompt {
  if (!hasOnly(params, ["sessionId", "prompt"])) return false;
  const { sessionId, prompt } = params;
  return typeof sessionId === "string" && Array.isArray(prompt) && prompt.every(isPlainText);
}

function isPlainText(block: unknown): boolean {
  return hasOnly(block, ["type", "text"]) && block.type === "text" && typeof block.text === "string";
}
