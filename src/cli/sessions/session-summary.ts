import { collect } from "../../base/async.ts";
import { UserError } from "../../base/errors.ts";
import { formatModelRef } from "../../model/catalog/catalog.ts";
import { askAboutConversation } from "../../context/conversation-text.ts";
import { omitReverted } from "../../conversation/visible-messages.ts";
import { resolveModel } from "../chosen-model.ts";
import type { Call } from "../command-line/command.ts";
import { findCalledSession } from "./find-session.ts";
import { openLocalApp } from "../local-app.ts";
import { print, printJson, writeNotice, sanitizeFor, writeToStderr } from "../terminal/output.ts";

const agent = "summary";

const modelTimeoutMs = 180_000;

/** Lets a model summarize a session in two or three sentences, as for a pull request. */
export async function summarizeSession(call: Call): Promise<number> {
  const { app, project } = await openLocalApp(call.text("cwd"));
  const store = await app.store();
  const { id, revert } = await findCalledSession(store, call);
  const messages = await collect(omitReverted(store.messages(id), revert));
  if (messages.length === 0) throw new UserError(`The session ${id} has no messages yet.`);
  const model = resolveModel(call, project, project.agents.get(agent)?.model);
  writeToStderr(`Asking ${formatModelRef(model.ref)} …`);
  const signal = AbortSignal.timeout(modelTimeoutMs);
  const end = "Describe what was done.";
  const onRetry = async ({ message }: { message: string }) => writeNotice(message);
  const answer = await askAboutConversation(project, { agent, model, messages, end, onRetry }, signal);
  if (answer.outcome === "failed")
    throw new UserError(
      signal.aborted ? `No answer within ${modelTimeoutMs / 1000} s.` : answer.error.message,
    );
  const summary = answer.text.trim();
  if (summary === "") throw new UserError("The model wrote no summary; try again, or another --model.");
  const { tokens, cost } = answer;
  if (call.has("json"))
    await printJson({ session: id, model: formatModelRef(model.ref), summary, tokens, cost });
  else await print(sanitizeFor(process.stdout, summary));
  return 0;
}
