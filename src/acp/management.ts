import type { AgentApp } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import type { Connection } from "./connection.ts";
import { setOption } from "./config-options.ts";
import { invalidParams, sessionNotFound } from "./errors.ts";
import { checkedFolders, greet, whenStored } from "./lifecycle.ts";
import { toServers } from "./mcp-servers.ts";
import { extensionParams, parseSessionId } from "./params.ts";
import { pickersOf } from "./session-view.ts";

/** UTF-16 units of a title that a person gives. */
const titleLimit = 256;

/** Where a fork ends, in its `_meta`: a message's id as the client got it with a chunk. */
const forkMetaSchema = z.looseObject({ messageId: z.string().optional() });

const setModelParams = extensionParams(z.object({ sessionId: z.string(), modelId: z.string() }));

/** What the protocol's unstable part has to manage sessions, and one method that is gone from it. */
export function managementHandlers(app: AgentApp, connection: Connection): void {
  const { sessions } = connection;

  app.onRequest("session/fork", ({ params, requestId }) =>
    connection.setups.run(params.sessionId, async () => {
      const id = parseSessionId(params.sessionId);
      const point = forkPointOf(params._meta);
      const forked = await sessions.fork(id, await checkedFolders(params), point);
      if (forked.status === "missing") throw sessionNotFound(id);
      if (forked.status === "no such message")
        throw invalidParams(`The session has no message "${point}" to fork at.`);
      const { session } = forked;
      session.setServers(toServers(params.mcpServers ?? []));
      const view = connection.addView(session);
      connection.holdUntilAnswered(view, requestId, () => session.servers.start());
      await greet(view, session);
      return { sessionId: session.id, ...pickersOf(session, connection.client) };
    }),
  );

  app.onRequest("session/set_title", async ({ params, requestId }) => {
    const id = parseSessionId(params.sessionId);
    const title = toTitle(params.title);
    const view = connection.findView(id);
    view?.release();
    if (view !== undefined) connection.holdUntilAnswered(view, requestId);
    if (!(await sessions.setTitle(id, title))) throw sessionNotFound(id);
    return { title };
  });

  app.onRequest("session/archive", ({ params }) =>
    connection.setups.run(params.sessionId, async () => {
      const id = parseSessionId(params.sessionId);
      if (!(await sessions.setArchived(id, true))) throw sessionNotFound(id);
      connection.removeView(id);
      return {};
    }),
  );

  app.onRequest("session/unarchive", ({ params }) =>
    connection.setups.run(params.sessionId, async () => {
      const id = parseSessionId(params.sessionId);
      if (!(await sessions.setArchived(id, false))) throw sessionNotFound(id);
      return {};
    }),
  );

  app.onRequest("session/status", async ({ params }) => {
    const id = parseSessionId(params.sessionId);
    if (sessions.live(id) !== undefined) return { status: "open" as const };
    if (await sessions.isStored(id)) return { status: "saved" as const };
    throw sessionNotFound(id);
  });

  // Gone from the protocol; older clients still choose models by it.
  app.onRequest("session/set_model", setModelParams, async ({ params, requestId }) => {
    const view = connection.view(params.sessionId);
    view.release();
    connection.holdUntilAnswered(view, requestId);
    await setOption(view.session, "model", params.modelId);
    return whenStored(view.session, {});
  });
}

function forkPointOf(meta: unknown): string | undefined {
  if (meta === undefined || meta === null) return undefined;
  const parsed = forkMetaSchema.safeParse(meta);
  if (!parsed.success) throw invalidParams("_meta.messageId must be the id of a message.");
  return parsed.data.messageId;
}

function toTitle(text: string): string {
  const title = text.replace(/\s+/g, " ").trim().slice(0, titleLimit).trimEnd().toWellFormed();
  if (title === "") throw invalidParams("A title needs at least one character.");
  return title;
}
