import { readFile, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { once } from "../base/async.ts";
import { hasOnly } from "../base/validator.ts";
import type { StoredSkill } from "./skill.ts";

/** The bundled skills. They never change at run time, so their index is read once. */
export class BundledSkills {
  readonly folder: string;
  /** Rejects if the skills cannot be read. */
  readonly load: () => Promise<readonly StoredSkill[]>;

  constructor(folder: string) {
    this.folder = folder;
    this.load = once(() => readIndex(folder));
  }
}

async function readIndex(folder: string): Promise<StoredSkill[]> {
  const bundled = await realpath(folder);
  const index: unknown = JSON.parse(await readFile(join(bundled, "index.json"), "utf8"));
  return Object.entries(isIndex(index) ? index : {}).map(([file, { name, description }]) => {
    const path = join(bundled, file);
    return { name, description, path, folder: dirname(path) };
  });
}

/** Name and description by path relative to the folder. Written by `npm run generate`. */
function isIndex(value: unknown): value is Record<string, { name: string; description: string }> {
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).every(
    (entry) =>
      hasOnly(entry, ["name", "description"]) &&
      typeof entry.name === "string" &&
      typeof entry.description === "string",
  );
}
