import { orWhenAborted } from "../base/async.ts";
import { UserError } from "../base/errors.ts";
import { FetchedTexts } from "../instruction/fetched-texts.ts";
import type { Instruction } from "../instruction/instructions.ts";
import { evaluate } from "../permission/judge.ts";
import type { SessionSettings } from "./session-settings.ts";
import type { Project } from "../conversation/project.ts";

export interface SessionInstructionsDeps {
  project(): Project;
  settings: SessionSettings;
  /** Shows the user a warning. */
  warn(text: string): void;
  /** The parent session's instructions; a child shares its fetched texts and shows no notes. */
  parent: SessionInstructions | undefined;
}

/** Loads the instructions of a session, again for each turn. */
export class SessionInstructions {
  readonly #deps: SessionInstructionsDeps;
  readonly #fetched: FetchedTexts;
  readonly #shownNotes = new Set<string>();

  constructor(deps: SessionInstructionsDeps) {
    this.#deps = deps;
    this.#fetched = deps.parent ? deps.parent.#fetched : new FetchedTexts((url) => this.#fetchText(url));
  }

  /** Loads the current instructions. Shows a warning once for each omitted one. */
  async load(signal: AbortSignal): Promise<readonly Instruction[]> {
    const { parent } = this.#deps;
    const loading = this.#deps.project().instructions(this.#fetched);
    const loaded = await orWhenAborted(loading, signal, undefined);
    const { instructions, notes } = loaded ?? { instructions: [], notes: [] };
    const isNew = (note: string) => !this.#shownNotes.has(note);
    for (const note of parent === undefined ? notes.filter(isNew) : []) {
      this.#shownNotes.add(note);
      this.#deps.warn(`Instructions: ${note}`);
    }
    return instructions;
  }

  async #fetchText(url: string): Promise<string> {
    const request = { permission: "webfetch", subjects: [{ text: url }], always: [] };
    const { action, reason } = evaluate(request, this.#deps.settings.agent.rules);
    if (action === "deny") throw new UserError(reason);
    return this.#deps.project().fetchText(url);
  }
}
