import { join } from "node:path";
import { sleep } from "../../base/async.ts";
import { UserError } from "../../base/errors.ts";
import type { Validator } from "../../base/validator.ts";
import type { Log } from "../../base/log.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { isRecord, isStringArray } from "../../base/text/record.ts";
import { withStoreErrors } from "./disk-error.ts";
import type { JsonStore } from "./json-store.ts";
import { acquireFileLease, acquireStoreLease } from "./lock.ts";

/** One step from a store version to the next. Must be repeatable: it may be interrupted and run again. */
export interface Migration {
  readonly name: string;
  run(store: JsonStore): Promise<void>;
}

/** Longest wait for another process that migrates the same store. */
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

/** A store's version is the number of migrations that have run. Append only. */
const shippedMigrations: readonly Migration[] = [
  {
    name: "create the layout",
    async run(store) {
      for (const folder of folders) await makeFolder(join(store.root, folder), 0o700);
    },
  },
];

const key = ["migration"];

/** Older versions stored only the number of migrations, when there was one migration. */
const bareVersionLimit = 1;

/** The stored version lists its migrations, because a bare number cannot be distinguished from damage. */
interface StoredVersion {
  version: number;
  isFramed: boolean;
}

/**
 * Accepts the version of a store that this or a later program wrote. Anything else is damaged: it is moved aside and
 * reported, and every migration runs again.
 */
function createVersionValidator(migrations: readonly Migration[]): Validator<StoredVersion> {
  return {
    safeParse(value) {
      if (isBareVersion(value)) return { success: true, data: { version: value, isFramed: false } };
      const names = isRecord(value) && isStringArray(value["migrations"]) ? value["migrations"] : [];
      const isPlausible =
        isRecord(value) &&
        value["version"] === names.length &&
        names.every((name, index) => name === (migrations[index]?.name ?? name));
      if (isPlausible) return { success: true, data: { version: names.length, isFramed: true } };
      return { success: false, error: { issues: [{ path: [], message: "its migrations do not fit" }] } };
    },
  };
}

const isBareVersion = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= bareVersionLimit;

/** Migrates the store to this program's version. Throws a {@link UserError} for a newer store. */
export async function migrate(
  store: JsonStore,
  log: Log,
  migrations: readonly Migration[] = shippedMigrations,
): Promise<void> {
  const { version, isFramed } = await readVersion(store, migrations);
  if (version === migrations.length && isFramed) return;
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
  const { version, isFramed } = await readVersion(store, migrations);
  if (!isFramed && version > 0) await writeVersion(store, migrations.slice(0, version));
  for (const [index, migration] of migrations.entries()) {
    if (index < version) continue;
    log.info("migrating the store", { to: index + 1, name: migration.name });
    await migration.run(store);
    await writeVersion(store, migrations.slice(0, index + 1));
  }
}

async function writeVersion(store: JsonStore, done: readonly Migration[]): Promise<void> {
  await store.write(key, { version: done.length, migrations: done.map(({ name }) => name) });
}

async function readVersion(store: JsonStore, migrations: readonly Migration[]): Promise<StoredVersion> {
  const stored = (await store.read(key, createVersionValidator(migrations))) ?? {
    version: 0,
    isFramed: false,
  };
  if (stored.version <= migrations.length) return stored;
  throw new UserError(
    `The sessions in ${store.root} were stored by a newer version of this program (store version ${stored.version}, ` +
      `known is ${migrations.length}). Update it, or set XDG_DATA_HOME to another folder.`,
  );
}

/**
 * Uses a lease file without the native lock: loading that would delay the first start, and every migration is
 * repeatable.
 */
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
