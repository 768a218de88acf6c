import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { SessionId } from "../message/ids.ts";
import { missing } from "./json/json-file.ts";
import type { JsonStore } from "./json/json-store.ts";

export interface StoreDamage {
  /** Damaged files that were moved aside, now or before. */
  readonly aside: readonly string[];
  /** Sessions whose own file is lost; they are rebuilt from their other files. */
  readonly rebuilt: readonly SessionId[];
  /** Sessions with messages whose folder is unknown. */
  readonly unplaced: readonly SessionId[];
}

/** Folders whose files are small and few. Messages are checked when their session is loaded. */
const checkedFolders = [
  "todo",
  "session_diff",
  "session_prompt",
  "project",
  "permission",
  "trust",
  "mcp-authorization",
];

/** Accepts every JSON value; the users of a file check its fields. */
const anyJson = { safeParse: (data: unknown) => ({ success: true as const, data }) };

/** Reads the small files of a store and moves aside those that are not JSON. */
export async function readSmallFiles(store: JsonStore): Promise<void> {
  for (const folder of checkedFolders) {
    const names = await store.names([folder]);
    for await (const _ of store.readEach([folder], names, anyJson));
  }
}

/** Returns the files below a folder that were moved aside, sorted. */
export async function findAside(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(missing)) ?? []) {
    const path = join(folder, entry.name);
    if (/\.corrupt-\d+$/.test(entry.name)) found.push(path);
    else if (entry.isDirectory()) found.push(...(await findAside(path)));
  }
  return found.sort();
}
