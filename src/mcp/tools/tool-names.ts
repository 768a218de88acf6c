import { sha256 } from "../../base/text/hash.ts";

/** Maximum length of a tool name for providers. */
const nameLimit = 64;

/** Names of permissions and tools that do not refer to tools of servers. */
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
  "tool_search",
  "call_tool",
];

/**
 * Assigns each tool a unique name, `<server>_<tool>`, in characters that every provider accepts. Names that are taken or
 * too long get a hash suffix.
 */
export class ToolNames {
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string>) {
    this.#taken = new Set([...reserved, ...taken]);
  }

  nameFor(server: string, tool: string): string {
    const plain = toValidName(`${server}_${tool}`);
    const fits = plain.length <= nameLimit && !this.#taken.has(plain);
    const name = fits ? plain : this.#addHash(plain, `${server}\0${tool}`);
    this.#taken.add(name);
    return name;
  }

  #addHash(plain: string, whole: string): string {
    for (let round = 0; ; round++) {
      const hash = sha256(`${whole}\0${round}`).slice(0, 6);
      const name = `${plain.slice(0, nameLimit - hash.length - 1)}_${hash}`;
      if (!this.#taken.has(name)) return name;
    }
  }
}

function toValidName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, "_");
}
