import { opendirSync } from "node:fs";
import { codeOf } from "../base/errors.ts";

/** A folder with more names is refused. */
const namesLimit = 50_000;

/** The names in a folder, none where it is not there or closed to us. Throws for a folder with too many. */
export function namesInSync(folder: string): string[] {
  const names: string[] = [];
  const opened = open(folder);
  if (opened === undefined) return names;
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) {
      names.push(entry.name);
      if (names.length > namesLimit) throw new Error(`${folder} holds more than ${namesLimit} names`);
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
