import { PLAN_AGENT } from "../agent/plan-mode.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { uncheckedChangesReminder, unprovenClaimReminder } from "../conversation/reminders.ts";
import { listActivity } from "../evidence/activity.ts";
import { describeClaim } from "../evidence/describe.ts";
import type { Evidence } from "../evidence/evidence.ts";
import type { Activity } from "../message/activity.ts";
import { type MessageId, newPartId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";

export interface TurnEvidenceDeps {
  readonly transcript: Transcript;
  /** The session's folder and the user's home. */
  readonly folders: { readonly cwd: string; readonly home: string };
}

/** Whether the turn's conditions allow a reminder. */
export interface ReminderConditions {
  readonly agent: string;
  readonly isEnabled: boolean;
  /** Whether the model can run commands in the next steps. */
  readonly canRunCommands: boolean;
}

/**
 * Collects what a turn changes and runs, reminds the model once of a check that is missing, and stores the evidence
 * with the last answer. Messages are read while they are visible, because a compaction may replace them.
 */
export class TurnEvidence {
  readonly #deps: TurnEvidenceDeps;
  readonly #activity: Activity[] = [];
  #text = "";
  /** The newest message that was read. */
  #last: MessageId | undefined;
  #isReminded = false;

  /** Ignores the messages that exist already. */
  constructor(deps: TurnEvidenceDeps) {
    this.#deps = deps;
    this.#last = deps.transcript.messages.at(-1)?.info.id;
  }

  /** Reads the answers since the last call. */
  note(): void {
    const last = this.#last;
    const fresh = this.#deps.transcript.messages.filter(
      ({ info }) =>
        info.role === "assistant" && info.summary !== true && (last === undefined || info.id > last),
    );
    const newest = fresh.at(-1);
    if (newest === undefined) return;
    this.#last = newest.info.id;
    this.#text = textOf(newest);
    this.#activity.push(...listActivity(fresh));
  }

  /** Returns a reminder for an answer that would end the turn; undefined if none is due. */
  async createReminder(conditions: ReminderConditions): Promise<string | undefined> {
    const { agent, isEnabled, canRunCommands } = conditions;
    if (this.#isReminded || !isEnabled || !canRunCommands || agent === PLAN_AGENT) return undefined;
    const evidence = await this.#find();
    if (evidence?.reminder === undefined) return undefined;
    this.#isReminded = true;
    const { files, moreFiles = 0, unproven } = evidence.facts;
    if (evidence.reminder === "claim")
      return unprovenClaimReminder(
        unproven.map((claim) => describeClaim(claim).replace("the model says", "you say")).join("; "),
      );
    const count = files.length + moreFiles;
    return uncheckedChangesReminder(count === 1 ? "1 file" : count === 0 ? "files" : `${count} files`);
  }

  /** Stores the evidence of a turn that changed files, which also shows it. */
  async store(): Promise<void> {
    const { transcript } = this.#deps;
    const evidence = await this.#find();
    const answer = this.#last === undefined ? undefined : transcript.find(this.#last);
    // A turn that ends right after a compaction has no visible answer.
    if (evidence === undefined || answer?.info.role !== "assistant") return;
    transcript.putPart(answer.info.id, { id: newPartId(), type: "evidence", ...evidence.facts });
    await transcript.seal(answer.info.id);
  }

  /** Loads the analysis of command lines only if something happened. */
  async #find(): Promise<Evidence | undefined> {
    if (this.#activity.length === 0) return undefined;
    const { findEvidence } = await import("../evidence/evidence.ts");
    return findEvidence(this.#activity, this.#text, this.#deps.folders);
  }
}

function textOf({ parts }: Message): string {
  return parts
    .flatMap((part) =>
      part.type === "text" && part.synthetic !== true && part.ignored !== true ? [part.text] : [],
    )
    .join("\n");
}
