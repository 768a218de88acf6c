import type { AgentError } from "../message/message.ts";

/** The error of a call whose signal was aborted. */
export const cancelled = (): AgentError => ({ code: "cancelled", message: "Cancelled.", retryable: false });
