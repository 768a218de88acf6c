import { PLAN_AGENT } from "../agent/plan-mode.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { uncheckedChangesReminder, unprovenClaimReminder } from "../conversation/reminders.ts";
import { type CallActivity, describeCall, orderActivity } from "../evidence/activity.ts";
import { describeClaim } from "../evidence/describe.ts";
import type { Evidence } from "../evidence/evidence.ts";
import { type MessageId, newPartId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import { hasRunningJob } from "../message/part.ts";
import type { Jobs } from "../tool/job/jobs.ts";

export interface TurnEvidenceDeps {
  readonly transcript: Transcript;
  readonly jobs: Pick<Jobs, "all">;
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
  readonly #calls: NotedCall[] = [];
  #latestStart = 0;
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
    const last = this.#last ?? "";
    const { messages } = this.#deps.transcript;
    const fresh = messages
      .slice(messages.findLastIndex(({ info }) => info.id <= last) + 1)
      .filter(({ info }) => info.role === "assistant" && info.summary !== true);
    const newest = fresh.at(-1);
    if (newest === undefined) return;
    this.#last = newest.info.id;
    this.#text = textOf(newest);
    // A clock that is set back does not change the order of messages.
    const earliest = this.#latestStart;
    for (const call of fresh.flatMap(({ parts }) => parts.filter((part) => part.type === "tool"))) {
      const described = describeCall(call);
      const jobCall = hasRunningJob(call.state) ? call.callId : undefined;
      const start = Math.max(described.start, earliest);
      this.#calls.push({ ...described, start, jobCall });
      this.#latestStart = Math.max(start, this.#latestStart);
    }
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
    const activities = orderActivity(this.#calls.map((call) => this.#describeNow(call)));
    if (activities.length === 0) return undefined;
    const { findEvidence } = await import("../evidence/evidence.ts");
    return findEvidence(activities, this.#text, this.#deps.folders);
  }

  /** Adds what the call's job did, if it has ended. */
  #describeNow(noted: NotedCall): CallActivity {
    const { jobCall, start } = noted;
    const job = this.#deps.jobs.all.find(
      ({ call }) => jobCall !== undefined && call?.part.callId === jobCall,
    );
    return job?.call === undefined ? noted : { ...describeCall(job.call.part), start };
  }
}

interface NotedCall extends CallActivity {
  /** The call's id if its job ran when it was noted. */
  readonly jobCall: string | undefined;
}

function textOf({ parts }: Message): string {
  return parts
    .flatMap((part) =>
      part.type === "text" && part.synthetic !== true && part.ignored !== true ? [part.text] : [],
    )
    .join("\n");
}
