import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { UserError } from "../base/errors.ts";
import { showInvisible } from "../permission/invisible.ts";
import { describeConsent } from "../session/consent.ts";
import { findWorktree } from "../workspace/worktree.ts";
import { localApp } from "./local-app.ts";
import { UsageError } from "./usage.ts";

/** Lists the folders whose own configuration counts, adds one, or takes one back. */
export async function trust(args: readonly string[]): Promise<number> {
  const [verb = "list", folder, ...more] = args;
  if (more.length > 0) throw new UsageError(`trust takes one folder; too much: ${more.join(" ")}`);
  switch (verb) {
    case "list":
      return list();
    case "add":
      return add(required(verb, folder));
    case "revoke":
      return revoke(required(verb, folder));
    default:
      throw new UsageError(`trust takes add DIR, revoke DIR or nothing, not "${verb}"`);
  }
}

async function list(): Promise<number> {
  const { app } = await localApp();
  const folders = await app.trust.list();
  for (const { folder, consents } of folders) {
    const newest = new Date(consents.at(-1)?.time ?? 0).toISOString();
    print(`${folder}  since ${newest}`);
  }
  if (folders.length === 0) print("No folder is trusted.");
  return 0;
}

async function add(folder: string): Promise<number> {
  const { consent } = (await localApp(await existing(folder))).project;
  if (consent === undefined) {
    print(`Nothing in the configuration of ${folder} waits for trust.`);
    return 0;
  }
  await consent.accept();
  print(describeConsent(consent));
  print(`\n${consent.folder} is trusted as it is now; when that configuration changes you are asked again.`);
  return 0;
}

/** A folder that is gone can be taken back too. */
async function revoke(folder: string): Promise<number> {
  const { app } = await localApp();
  const path = await realpath(folder).catch(() => resolve(folder));
  const root = (await findWorktree(path).catch(() => undefined)) ?? path;
  const isRevoked = await app.trust.revoke(root);
  print(isRevoked ? `${root} is not trusted any more.` : `${root} was not trusted.`);
  return isRevoked ? 0 : 1;
}

function required(verb: string, folder: string | undefined): string {
  if (folder === undefined) throw new UsageError(`trust ${verb} needs a folder`);
  return resolve(folder);
}

async function existing(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch (error) {
    throw new UserError(`There is no folder ${folder}.`, { cause: error });
  }
}

function print(text: string): void {
  process.stdout.write(`${showInvisible(text)}\n`);
}
