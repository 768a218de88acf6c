import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { showInvisible } from "../../base/text/invisible.ts";
import { describeConsent } from "../../session-state/consent.ts";
import { findWorktree } from "../../workspace/worktree.ts";
import type { Call } from "../command-line/command.ts";
import { openLocalApp } from "../local-app.ts";
import { print, printJson } from "../terminal/output.ts";

/** Lists the trusted folders. */
export async function listTrusted(call: Call): Promise<number> {
  const { app } = await openLocalApp();
  const folders = await app.records.trust.list();
  const since = folders.map(({ folder, consents }) => {
    return { folder, since: new Date(consents.at(-1)?.time ?? 0).toISOString() };
  });
  if (call.has("json")) await printJson(since);
  else for (const one of since) await show(`${one.folder}  since ${one.since}`);
  if (folders.length === 0 && !call.has("json")) await print("No folder is trusted.");
  return 0;
}

export async function addTrust({ operands }: Call): Promise<number> {
  const folder = resolve(operands[0] ?? ".");
  const { consent } = (await openLocalApp(folder)).project;
  if (consent === undefined) {
    await show(`Nothing in the configuration of ${folder} needs your trust.`);
    return 0;
  }
  await consent.accept();
  await show(describeConsent(consent));
  await show(
    `\n${consent.folder} is trusted as it is now; you are asked again when its configuration changes.`,
  );
  return 0;
}

/** Revokes trust, also for a folder that no longer exists. */
export async function revokeTrust({ operands }: Call): Promise<number> {
  const folder = resolve(operands[0] ?? ".");
  const { app } = await openLocalApp();
  const path = await realpath(folder).catch(() => folder);
  const root = (await findWorktree(path).catch(() => undefined)) ?? path;
  const isRevoked = await app.records.trust.revoke(root);
  await show(isRevoked ? `${root} is no longer trusted.` : `${root} was not trusted.`);
  return isRevoked ? 0 : 1;
}

async function show(text: string): Promise<void> {
  await print(showInvisible(text));
}
