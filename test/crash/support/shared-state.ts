import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { silentLog } from "../../../src/base/log.ts";
import { setInFile } from "../../../src/config/edit.ts";
import { loadCredentials, saveCredential } from "../../../src/model/keys/credentials.ts";
import { ProjectRecords } from "../../../src/project/records.ts";
import { lockFolderOf } from "../../../src/storage/json/lock.ts";
import { SessionStore } from "../../../src/storage/session-store.ts";

/** State that several processes and several sessions of one process change. */
interface Shared {
  /** Adds one entry, like another session or command. */
  add(name: string): Promise<unknown>;
  /** Names of all entries. */
  names(): Promise<string[]>;
}

export function openShared(kind: string, folder: string): Shared {
  const open = shared[kind];
  if (open === undefined) throw new Error(`no kind ${kind}`);
  return open(folder);
}

const namesSchema = z.array(z.string());

/** All kinds of shared state, in a data folder. */
export const shared: Record<string, (folder: string) => Shared> = {
  approvals(folder) {
    const records = recordsIn(folder);
    return {
      add: async (name) =>
        (await records.openApprovals("p1")).add([{ permission: "bash", pattern: name }], "project"),
      names: async () => (await records.openApprovals("p1")).list().map(({ pattern }) => pattern),
    };
  },
  trust(folder) {
    const { trust } = recordsIn(folder);
    return {
      add: (name) => trust.add("/folder", name),
      names: async () => (await trust.list()).flatMap(({ consents }) => consents.map(({ hash }) => hash)),
    };
  },
  "stored files"(folder) {
    const files = filesIn(folder);
    return {
      add: async (name) => (await files()).update(["shared"], namesSchema, (names = []) => [...names, name]),
      names: async () => (await (await files()).read(["shared"], namesSchema)) ?? [],
    };
  },
  credentials: (folder) => ({
    add: (name) => saveCredential(folder, name, "key"),
    names: async () => Object.keys(await loadCredentials(folder)),
  }),
  configuration(folder) {
    const path = join(folder, "fairlead.json");
    return {
      add: (name) => setInFile(path, [{ path: ["agent", name], value: {} }], lockFolderOf(folder)),
      names: async () => (existsSync(path) ? Object.keys(JSON.parse(readFileSync(path, "utf8")).agent) : []),
    };
  },
};

function filesIn(folder: string) {
  const store = SessionStore.open({ root: join(folder, "storage"), log: silentLog });
  return async () => (await store).files;
}

const recordsIn = (folder: string) => new ProjectRecords(filesIn(folder));
