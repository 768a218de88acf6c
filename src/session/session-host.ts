import type { Elicit, UserCapabilities } from "../message/elicitation.ts";
import type { SessionId } from "../message/ids.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { Ask, AskWhy } from "../permission/gate.ts";
import type { EditorBuffers } from "../workspace/files/editor-files.ts";

/** The host of sessions: shows questions to the user and provides the editor's buffers. */
export interface SessionHost {
  ask: Ask;
  /** Asks for the reason of a rejection that may be explained. */
  askWhy: AskWhy;
  inquire(sessionId: SessionId, ...args: Parameters<Inquire>): ReturnType<Inquire>;
  /** Shows a request of an MCP server to the user. */
  elicit(sessionId: SessionId, ...args: Parameters<Elicit>): ReturnType<Elicit>;
  userCapabilities(): UserCapabilities;
  /** Notifies the client that a URL elicitation is complete. */
  visited(elicitationId: string): void;
  buffers(sessionId: SessionId): EditorBuffers;
}
