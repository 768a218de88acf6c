import { createHash } from "node:crypto";

/** What providers take. */
const nameLimit = 64;

/** Names of permissions that stand for something else than a tool of a server. */
const reserved: readonly string[] = [
  "read",
  "edit",
  "bash",
  "external_directory",
  "doom_loop",
  "plan_enter",
  "plan_exit",
  "apply_patch",
  "trust",
  "invalid",
];

/**
 * Gives each tool of each server a name of its own, `<server>_<tool>` in characters that every provider takes. A name
 * that is taken, or was changed so that others could become it, ends in a part of a hash of what it stands for.
 */
export class ToolNames {
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string>) {
    this.#taken = new Set([...reserved, ...taken]);
  }

  nameFor(server: string, tool: string): string {
    const plain = safe(`${server}_${tool}`);
    const fits = plain.length <= nameLimit && !this.#taken.has(plain);
    const name = fits ? plain : this.#distinct(plain, `${server}\0${tool}`);
    this.#taken.add(name);
    return name;
  }

  #distinct(plain: string, whole: string): string {
    for (let round = 0; ; round++) {
      const hash = createHash("sha256").update(`${whole}\0${round}`).digest("hex").slice(0, 6);
      const name = `${plain.slice(0, nameLimit - hash.length - 1)}_${hash}`;
      if (!this.#taken.has(name)) return name;
    }
  }
}

function safe(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, "_");
}
