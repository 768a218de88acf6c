import type { Elicit, ElicitationAbilities } from "../message/elicitation.ts";
import type { Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { Ask } from "../permission/gate.ts";
import type { EditorBuffers } from "../workspace/files/editor-files.ts";

/** The way out of the engine: each change, each question to the person, and the editor's own texts. */
export interface SessionHost {
  emit: Emit;
  ask: Ask;
  inquire(sessionId: SessionId, ...asked: Parameters<Inquire>): ReturnType<Inquire>;
  /** Puts what an MCP server asks to the person. */
  elicit(sessionId: SessionId, ...asked: Parameters<Elicit>): ReturnType<Elicit>;
  elicitationAbilities(): ElicitationAbilities;
  /** Says that an address which a person was brought to has served its purpose. */
  visited(elicitationId: string): void;
  buffers(sessionId: SessionId): EditorBuffers;
}
