import type { Editor } from "../commands/editor.ts";
import { UsageError } from "../command-line/usage.ts";
import { openApp } from "../local-app.ts";
import { applyChoices, type AvailableChoices } from "./run-choices.ts";
import type { RunOptions } from "./run-options.ts";
import type { RunSession } from "./run-report.ts";

interface OpenedSession extends RunSession {
  /** Whether it has no earlier cost. */
  readonly isNew: boolean;
}

/** Creates, continues or forks the session that the flags name. */
export async function openSession(editor: Editor, options: RunOptions): Promise<OpenedSession> {
  const known = await findSessionToContinue(editor, options);
  if (known !== undefined && !options.forks) return continueSession(editor, known, options);
  const { agent } = editor;
  const params = createParams(options);
  const { sessionId, ...available } =
    known === undefined
      ? await agent.request("session/new", withWorktree(params, options))
      : await agent.request<AvailableChoices & { sessionId: string }>("session/fork", {
          ...params,
          sessionId: known,
        });
  try {
    const choices = await applyChoices({ editor, sessionId, available }, options);
    await setTitle(editor, sessionId, options);
    return { sessionId, ...choices, isNew: known === undefined };
  } catch (error) {
    // Otherwise the next --continue would find this session.
    await agent.request("session/delete", { sessionId });
    throw error;
  }
}

async function continueSession(
  editor: Editor,
  sessionId: string,
  options: RunOptions,
): Promise<OpenedSession> {
  const available = await editor.agent.request("session/resume", { ...createParams(options), sessionId });
  const choices = await applyChoices({ editor, sessionId, available }, options);
  await setTitle(editor, sessionId, options);
  return { sessionId, ...choices, isNew: false };
}

function createParams({ cwd, additionalDirectories, systemText }: RunOptions) {
  return {
    cwd,
    mcpServers: [],
    additionalDirectories: [...additionalDirectories],
    ...(systemText !== undefined && { _meta: { systemPrompt: { append: systemText } } }),
  };
}

function withWorktree(params: ReturnType<typeof createParams>, { hasWorktree }: RunOptions) {
  return hasWorktree === undefined
    ? params
    : { ...params, _meta: { ...params._meta, worktree: hasWorktree } };
}

async function setTitle({ agent }: Editor, sessionId: string, { title }: RunOptions): Promise<void> {
  if (title !== undefined) await agent.request("session/set_title", { sessionId, title });
}

/** Returns the session id that the flags name; undefined for a new session. */
async function findSessionToContinue(
  editor: Editor,
  { session, continuesNewest, cwd }: RunOptions,
): Promise<string | undefined> {
  if (session === undefined) return continuesNewest ? findNewestSession(editor, cwd) : undefined;
  const { findSession } = await import("../sessions/find-session.ts");
  return (await findSession(await openApp().store(), session, cwd)).id;
}

async function findNewestSession({ agent }: Editor, cwd: string): Promise<string> {
  const { sessions } = await agent.request("session/list", { cwd });
  const first = sessions[0];
  if (first === undefined) throw new UsageError(`there is no session in ${cwd} to continue`, "run");
  return first.sessionId;
}
