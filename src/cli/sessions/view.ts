import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { collect } from "../../base/async.ts";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { omitReverted } from "../../conversation/visible-messages.ts";
import { renderSessionPage } from "../../reports/view/page.ts";
import { isSessionId } from "../../message/ids.ts";
import type { SessionStore } from "../../storage/session-store.ts";
import { writeAtomically } from "../../workspace/files/files.ts";
import type { Call } from "../command-line/command.ts";
import { openLocalApp } from "../local-app.ts";
import { openBrowser } from "../terminal/browser.ts";
import { print } from "../terminal/output.ts";
import { findCalledSession } from "./find-session.ts";

/** Writes a session as an HTML page and opens it in the browser. */
export async function viewSession(call: Call): Promise<number> {
  const { app, project } = await openLocalApp(call.text("cwd"));
  const store = await app.store();
  const info = await findCalledSession(store, call);
  const messages = await collect(omitReverted(store.messages(info.id), info.revert));
  const { snapshots } = project.workspace;
  const page = await renderSessionPage(info, messages, {
    load: (hash) => snapshots.load(hash),
    messagesOf: (id) => messagesOfTask(store, id),
  });
  await openPage(call, call.text("output") ?? (await viewFile(app.folders.cache, info.id)), page);
  return 0;
}

/** Returns the path of a page in the cache, which only the user can read. */
export async function viewFile(cacheFolder: string, name: string): Promise<string> {
  const folder = join(cacheFolder, "views");
  await makeFolder(folder, 0o700);
  return join(folder, `${name}.html`);
}

/** Writes a page, prints its path and opens it in the browser, unless --no-open is set. */
export async function openPage(call: Call, path: string, page: string): Promise<void> {
  const absolute = resolve(path);
  try {
    await writeAtomically(absolute, Buffer.from(page), 0o600);
  } catch (error) {
    throw new UserError(`${path} cannot be written: ${codeOf(error) ?? messageOf(error)}.`, { cause: error });
  }
  await print(absolute);
  if (!call.has("no-open")) openBrowser(pathToFileURL(absolute).href, process.platform, process.env);
}

async function messagesOfTask(store: SessionStore, id: string) {
  const info = isSessionId(id) ? await store.load(id) : undefined;
  return info === undefined ? [] : collect(omitReverted(store.messages(info.id), info.revert));
}
