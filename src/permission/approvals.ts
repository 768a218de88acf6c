import { z } from "zod";
import checks from "../../schema/checks.json" with { type: "json" };
import { generatedCheck } from "../base/json-schema.ts";
import { fastValidator } from "../base/validator.ts";
import { UserError } from "../base/errors.ts";
import type { Rule } from "./rule.ts";

/** Where an approval applies until it is revoked: in the session, also after loading it, or in the project. */
export type ApprovalScope = "session" | "project";

/** A pattern that the user allowed "always". It turns an ask into an allow and never lifts a deny. */
export interface Approval {
  permission: string;
  pattern: string;
  scope: ApprovalScope;
}

/** Storage of a project's approvals. The stored value is undefined if there is none yet. */
export interface ApprovalStore {
  load(): Promise<unknown>;
  /** Changes the stored value under a lock shared by all sessions and processes. */
  update(change: (stored: unknown) => StoredApprovals): Promise<void>;
}

const entrySchema = z.object({ permission: z.string().min(1), pattern: z.string().min(1) });

export const storedApprovalsSchema = z.object({ approvals: z.array(entrySchema) });
export type StoredApprovals = z.infer<typeof storedApprovalsSchema>;
type Entry = z.infer<typeof entrySchema>;

export const storedApprovals = fastValidator(generatedCheck(checks, "approvals"), storedApprovalsSchema);

/** Maximum number of approvals per scope; the oldest are dropped. */
const approvalLimit = 1000;

/** The approvals of a session and its project. Without a store, project approvals apply to the session only. */
export class Approvals {
  readonly #store: ApprovalStore | undefined;
  #session: Entry[] = [];
  /** Approvals of this process that are not stored. */
  #temporary: readonly Entry[] = [];
  #project: Entry[] = [];
  /** Project approvals that are not saved yet; they apply to this session. */
  #unsaved: Entry[] = [];
  #saveSession: (entries: Entry[]) => Promise<void> = () => Promise.resolve();

  constructor(store?: ApprovalStore) {
    this.#store = store;
  }

  /** Loads the project's approvals. Throws {@link UserError} if they cannot be read. */
  static async open(store: ApprovalStore): Promise<Approvals> {
    const approvals = new Approvals(store);
    approvals.#project = parseEntries(await store.load());
    return approvals;
  }

  /** Uses the session's own approvals, which are stored with it. */
  attachSession(session: { entries: readonly Entry[]; save(entries: Entry[]): Promise<void> }): void {
    this.#session = mergeEntries([], session.entries);
    this.#saveSession = (entries) => session.save(entries);
  }

  /** Adds approvals that are not stored. */
  allow(entries: readonly Entry[]): void {
    this.#temporary = entries;
  }

  /** Reloads the project's approvals, which other sessions and processes may have changed. */
  async refresh(): Promise<void> {
    if (!this.#store) return;
    this.#project = mergeEntries(parseEntries(await this.#store.load()), this.#unsaved);
  }

  /** Returns allow rules, which apply only where other rules ask. */
  rules(): Rule[] {
    return [...this.#temporary, ...this.list()].map(({ permission, pattern }) => ({
      permission,
      pattern,
      action: "allow",
    }));
  }

  list(): Approval[] {
    const withScope = (entries: readonly Entry[], scope: ApprovalScope) =>
      entries.map((entry) => ({ ...entry, scope }));
    return [...withScope(this.#project, "project"), ...withScope(this.#session, "session")];
  }

  /** Takes effect at once. Rejects with the store's error if saving fails. */
  async add(entries: readonly Entry[], scope: ApprovalScope): Promise<void> {
    if (scope === "session" || !this.#store) {
      this.#session = mergeEntries(this.#session, entries);
      return this.#saveSession(this.#session);
    }
    this.#project = mergeEntries(this.#project, entries);
    this.#unsaved = mergeEntries(this.#unsaved, entries);
    await this.#change((stored) => mergeEntries(stored, entries));
    this.#unsaved = this.#unsaved.filter((known) => !entries.some((entry) => isSame(entry, known)));
  }

  /** Returns whether the approval existed. */
  async revoke({ permission, pattern, scope }: Approval): Promise<boolean> {
    const others = (entries: readonly Entry[]) =>
      entries.filter((entry) => !isSame(entry, { permission, pattern }));
    const before = this.list().length;
    if (scope === "session") {
      this.#session = others(this.#session);
      await this.#saveSession(this.#session);
    } else [this.#project, this.#unsaved] = [others(this.#project), others(this.#unsaved)];
    if (scope === "project") await this.#change(others);
    return this.list().length < before;
  }

  async #change(change: (stored: readonly Entry[]) => Entry[]): Promise<void> {
    await this.#store?.update((stored) => ({ approvals: change(parseEntries(stored)) }));
  }
}

/** Throws {@link UserError} if the stored value is invalid. */
function parseEntries(stored: unknown): Entry[] {
  if (stored === undefined) return [];
  const parsed = storedApprovals.safeParse(stored);
  if (parsed.success) return parsed.data.approvals;
  throw new UserError(
    `The project's stored approvals cannot be read: ${z.prettifyError(parsed.error)}. Delete them to be asked again.`,
  );
}

function mergeEntries(entries: readonly Entry[], added: readonly Entry[]): Entry[] {
  const all = [...entries];
  for (const { permission, pattern } of added) {
    if (!all.some((known) => isSame(known, { permission, pattern }))) all.push({ permission, pattern });
  }
  return all.slice(-approvalLimit);
}

function isSame(left: Entry, right: Entry): boolean {
  return left.permission === right.permission && left.pattern === right.pattern;
}
