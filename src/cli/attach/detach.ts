import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { deferred, orAfter } from "../../base/async.ts";
import { UserError } from "../../base/errors.ts";
import type { Call } from "../command-line/command.ts";
import { getErrorReason, startEditor } from "../commands/editor.ts";
import { openLocalApp } from "../local-app.ts";
import { readOptions } from "../run/run-options.ts";
import { openSession } from "../run/run-session.ts";
import { print, writeNotice } from "../terminal/output.ts";

/** Longest wait for the model's first output, so that an early failure is reported here. */
const firstOutputMs = 3_000;

/** Updates that show that the model answers. Thoughts are left out: notices arrive as thoughts. */
const outputs: readonly SessionUpdate["sessionUpdate"][] = ["agent_message_chunk", "tool_call"];

/** Starts a turn that continues without this terminal, and prints the session's id. */
export async function runDetached(call: Call): Promise<number> {
  if (process.platform === "win32")
    throw new UserError("--detach is not available on Windows: no other process could join the turn there.");
  const options = await readOptions(call);
  if (options.trust) await (await openLocalApp(options.cwd)).project.consent?.accept();
  const answered = deferred<"running">();
  let isPrompted = false;
  const editor = await startEditor({
    env: options.env,
    isDetached: true,
    // Explanations for users would not be seen here.
    isScripted: true,
    onUpdate: ({ sessionUpdate }) => {
      if (isPrompted && outputs.includes(sessionUpdate)) answered.resolve("running");
    },
    // A question waits until somebody attaches.
    onPermission: () => new Promise(() => {}),
  });
  try {
    const { sessionId } = await openSession(editor, options);
    isPrompted = true;
    const prompt = editor.agent.request("session/prompt", { sessionId, prompt: [...options.blocks] });
    const ended = prompt.then(() => "ended" as const);
    const state = await orAfter(Promise.race([ended, answered.promise]), firstOutputMs, "running" as const);
    ended.catch(() => {});
    await print(sessionId);
    writeNotice(
      state === "ended"
        ? `The turn has ended. Show it: fairlead sessions view ${sessionId}`
        : `The turn goes on for at most ${options.detachedMinutes} minutes. Show it: fairlead attach ${sessionId}`,
    );
    editor.leave();
    return 0;
  } catch (error) {
    await editor.close();
    throw new UserError(getErrorReason(error), { cause: error });
  }
}
