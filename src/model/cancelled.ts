import type { AgentError } from "../message/message.ts";

/** How a call fails whose signal has aborted. */
export const cancelled = (): AgentError => ({ code: "cancelled", message: "Cancelled.", retryable: false });
