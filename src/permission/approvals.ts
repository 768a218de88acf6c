import { z } from "zod";
import { hasOnly, fastValidator } from "../base/validator.ts";
import { UserError } from "../base/errors.ts";
import type { Rule } from "./rule.ts";

/** For how long an approval holds: in the session, also when it is loaded again, or for the project; until it is revoked. */
export type ApprovalScope = "session" | "project";

/** What a person allowed "always": it turns an ask into an allow and never lifts a deny. */
export interface Approval {
  permission: string;
  pattern: string;
  scope: ApprovalScope;
}

/** Where the approvals of a project are stored. A stored value is undefined when there is none yet. */
export interface ApprovalStore {
  load(): Promise<unknown>;
  /** Changes the stored value; no other session or process changes it meanwhile. */
  update(change: (stored: unknown) => StoredApprovals): Promise<void>;
}

const entrySchema = z.object({ permission: z.string().min(1), pattern: z.string().min(1) });

/** The stored form of a project's approvals. */
const storedApprovalsSchema = z.object({ approvals: z.array(entrySchema) });
export type StoredApprovals = z.infer<typeof storedApprovalsSchema>;
type Entry = z.infer<typeof entrySchema>;

/** The same, known at a look where it is right. */
export const storedApprovals = fastValidator(isStoredApprovals, storedApprovalsSchema);

/** More than this and the oldest of a scope is forgotten. */
const approvalLimit = 1000;

/** The approvals of a session and its project. Without a store, those for the project hold for the session only. */
export class Approvals {
  readonly #store: ApprovalStore | undefined;
  #session: Entry[] = [];
  #project: Entry[] = [];
  /** Those of the project that could not be saved (yet); they hold for this session. */
  #unsaved: Entry[] = [];
  #saveSession: (entries: Entry[]) => Promise<void> = () => Promise.resolve();

  constructor(store?: ApprovalStore) {
    this.#store = store;
  }

  /** With what the project remembers. Throws {@link UserError} where that cannot be read. */
  static async open(store: ApprovalStore): Promise<Approvals> {
    const approvals = new Approvals(store);
    approvals.#project = parseEntries(await store.load());
    return approvals;
  }

  /** Has a session's own, which are kept with it. */
  attachSession(session: { entries: readonly Entry[]; save(entries: Entry[]): Promise<void> }): void {
    this.#session = mergeEntries([], session.entries);
    this.#saveSession = (entries) => session.save(entries);
  }

  /** Takes over what other sessions and processes approved or took back for the project meanwhile. */
  async refresh(): Promise<void> {
    if (!this.#store) return;
    this.#project = mergeEntries(parseEntries(await this.#store.load()), this.#unsaved);
  }

  /** As rules that allow; they count only where the other rules ask. */
  rules(): Rule[] {
    return this.list().map(({ permission, pattern }) => ({ permission, pattern, action: "allow" }));
  }

  list(): Approval[] {
    const withScope = (entries: readonly Entry[], scope: ApprovalScope) =>
      entries.map((entry) => ({ ...entry, scope }));
    return [...withScope(this.#project, "project"), ...withScope(this.#session, "session")];
  }

  /** Holds at once, even where saving fails; that rejects with the store's error. */
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

  /** Whether there was such an approval. */
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

/** Throws {@link UserError} when the stored value is not what was written. */
function parseEntries(stored: unknown): Entry[] {
  if (stored === undefined) return [];
  if (isStoredApprovals(stored)) return stored.approvals;
  const parsed = storedApprovalsSchema.safeParse(stored);
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

function isStoredApprovals(value: unknown): value is StoredApprovals {
  return hasOnly(value, ["approvals"]) && Array.isArray(value.approvals) && value.approvals.every(isEntry);
}

function isEntry(value: unknown): value is Entry {
  if (!hasOnly(value, ["permission", "pattern"])) return false;
  return isNonEmptyString(value.permission) && isNonEmptyString(value.pattern);
}

function isNonEmptyString(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
