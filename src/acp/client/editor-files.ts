import type { AgentContext } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import type { SessionId } from "../../message/ids.ts";
import type { EditorBuffers } from "../../workspace/files/editor-files.ts";
import { cancelOptions } from "./client-requests.ts";
import type { ClientFeatures } from "../client-capabilities.ts";

const readSchema = z.looseObject({ content: z.string() });
/** Some clients answer a failed write with a string instead of an error. */
const writeSchema = z.union([z.looseObject({}), z.null(), z.undefined()]);

interface EditorDeps {
  client: AgentContext;
  /** Aborts when the client's input has ended. */
  gone: AbortSignal;
  sessionId: SessionId;
  pathOf: (real: string) => Promise<string>;
}

/** Creates the file methods that the client supports. Sends no optional params, because some clients reject them. */
export function editorBuffers(
  { client, gone, sessionId, pathOf }: EditorDeps,
  { readFiles, writeFiles }: Pick<ClientFeatures, "readFiles" | "writeFiles">,
): EditorBuffers {
  const until = (signal: AbortSignal) => cancelOptions(AbortSignal.any([signal, gone]));
  const read = async (real: string, signal: AbortSignal) => {
    const request = { sessionId, path: await pathOf(real) };
    const answer = await client.request("fs/read_text_file", request, until(signal));
    return readSchema.parse(answer).content;
  };
  const write = async (real: string, content: string, signal: AbortSignal) => {
    const request = { sessionId, path: await pathOf(real), content };
    writeSchema.parse(await client.request("fs/write_text_file", request, until(signal)));
  };
  return { ...(readFiles && { read }), ...(writeFiles && { write }) };
}

/** Creates file methods that call `open` on first use. */
export function lazyBuffers(
  { readFiles, writeFiles }: Pick<ClientFeatures, "readFiles" | "writeFiles">,
  open: () => Promise<EditorBuffers>,
): EditorBuffers {
  const read = async (path: string, signal: AbortSignal) => {
    const buffers = await open();
    if (buffers.read === undefined) throw new Error("the editor is gone");
    return buffers.read(path, signal);
  };
  const write = async (path: string, content: string, signal: AbortSignal) => {
    const buffers = await open();
    if (buffers.write === undefined) throw new Error("the editor is gone");
    return buffers.write(path, content, signal);
  };
  return { ...(readFiles && { read }), ...(writeFiles && { write }) };
}
