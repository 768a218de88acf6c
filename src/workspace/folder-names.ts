import { opendirSync } from "node:fs";
import { codeOf } from "../base/errors.ts";

/** Maximum number of names per folder. */
const namesLimit = 50_000;

/** Names in a folder; empty if it does not exist or cannot be read. Throws if there are too many. */
export function listNamesSync(folder: string): string[] {
  const names: string[] = [];
  const opened = open(folder);
  if (opened === undefined) return names;
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) {
      names.push(entry.name);
      if (names.length > namesLimit) throw new Error(`${folder} contains more than ${namesLimit} names`);
    }
  } finally {
    opened.closeSync();
  }
  return names;
}

function open(folder: string) {
  try {
    return opendirSync(folder, { bufferSize: 1024 });
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}
