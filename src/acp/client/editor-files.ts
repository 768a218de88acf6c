import { z } from "zod";
import type { SessionId } from "../../message/ids.ts";
import type { EditorBuffers } from "../../workspace/files/editor-files.ts";
import type { Requester } from "./requester.ts";
import type { ClientFeatures } from "../client-capabilities.ts";

const readSchema = z.looseObject({ content: z.string() });
/** Some clients answer a failed write with a string instead of an error. */
const writeSchema = z.union([z.looseObject({}), z.null(), z.undefined()]);

interface EditorDeps {
  requester: Requester;
  /** Aborts when the client's input has ended. */
  gone: AbortSignal;
  sessionId: SessionId;
  pathOf: (real: string) => Promise<string>;
}

/** Creates the file methods that the client supports. Sends no optional params, because some clients reject them. */
export function editorBuffers(
  { requester, gone, sessionId, pathOf }: EditorDeps,
  { readFiles, writeFiles }: Pick<ClientFeatures, "readFiles" | "writeFiles">,
): EditorBuffers {
  const until = (signal: AbortSignal) => AbortSignal.any([signal, gone]);
  const read = async (real: string, signal: AbortSignal) => {
    const request = { sessionId, path: await pathOf(real) };
    const answer = await requester.request("fs/read_text_file", request, until(signal));
    return readSchema.parse(answer).content;
  };
  const write = async (real: string, content: string, signal: AbortSignal) => {
    const request = { sessionId, path: await pathOf(real), content };
    writeSchema.parse(await requester.request("fs/write_text_file", request, until(signal)));
  };
  return { ...(readFiles && { read }), ...(writeFiles && { write }) };
}
