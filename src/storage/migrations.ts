import { join } from "node:path";
import { z } from "zod";
import { sleep } from "../base/async.ts";
import { UserError } from "../base/errors.ts";
import { quickForm } from "../base/form.ts";
import type { Log } from "../base/log.ts";
import { makeFolder } from "../base/make-folder.ts";
import { withStoreErrors } from "./disk-error.ts";
import type { JsonStore } from "./json-store.ts";
import { acquireFileLease, acquireStoreLease } from "./lock.ts";

/** One step from a store's version to the next. It may be cut off and run again, so it must be repeatable. */
export interface Migration {
  readonly name: string;
  run(store: JsonStore): Promise<void>;
}

/** How long to wait for another process that is migrating the same store. */
const waitLimitMs = 10_000;
const pollMs = 20;

const folders = [
  "session",
  "message",
  "todo",
  "session_diff",
  "project",
  "permission",
  "journal",
  "lock",
  "tmp",
];

/** A store's version is the number of those that have run. Append only. */
const shippedMigrations: readonly Migration[] = [
  {
    name: "create the layout",
    async run(store) {
      for (const folder of folders) await makeFolder(join(store.root, folder), 0o700);
    },
  },
];

const key = ["migration"];
const versionSchema = z.number().int().nonnegative();
const isVersion = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

/** Brings the store to this program's version. Throws a {@link UserError} for a store that is newer than that. */
export async function migrate(
  store: JsonStore,
  log: Log,
  migrations: readonly Migration[] = shippedMigrations,
): Promise<void> {
  if ((await versionOf(store, migrations.length)) === migrations.length) return;
  await withStoreErrors(store.root, async () => {
    const lease = await waitForLease(store);
    try {
      await runMissing(store, log, migrations);
    } finally {
      await lease.release();
    }
  });
}

async function runMissing(store: JsonStore, log: Log, migrations: readonly Migration[]): Promise<void> {
  const done = await versionOf(store, migrations.length);
  for (const [index, migration] of migrations.entries()) {
    if (index < done) continue;
    log.info("migrating the store", { to: index + 1, name: migration.name });
    await migration.run(store);
    await store.write(key, index + 1);
  }
}

async function versionOf(store: JsonStore, known: number): Promise<number> {
  const version = (await store.read(key, quickForm(isVersion, versionSchema))) ?? 0;
  if (version <= known) return version;
  throw new UserError(
    `The sessions in ${store.root} were stored by a newer version of this program (store version ${version}, ` +
      `known is ${known}). Update it, or set XDG_DATA_HOME to another folder.`,
  );
}

/** By its content alone: a first start should not wait for the native lock, and every step may be run again. */
async function waitForLease(store: JsonStore) {
  const deadline = performance.now() + waitLimitMs;
  for (;;) {
    const lease = await acquireStoreLease(store, "migration", acquireFileLease);
    if (lease.status === "held") return lease;
    if (performance.now() > deadline) {
      const holder = lease.pid === undefined ? "Another process" : `Process ${lease.pid}`;
      throw new UserError(
        `${holder} has been updating the store in ${store.root} for too long. End it and try again.`,
      );
    }
    await sleep(pollMs);
  }
}
