import { z } from "zod";

export const actionSchema = z.enum(["allow", "ask", "deny"]);
export type Action = z.infer<typeof actionSchema>;

/** The schema's own answer, without the schema, which takes its time to be built. */
export const isAction = (value: unknown): value is Action =>
  value === "allow" || value === "ask" || value === "deny";

/** `permission` and `pattern` take `*` (any run of characters) and `?` (one character). */
export interface Rule {
  permission: string;
  pattern: string;
  action: Action;
  /** An approval: it does not cover what an interpreter runs. */
  isApproval?: boolean;
}

/** Rules in order: the last that matches wins. */
export type Ruleset = readonly Rule[];

/** One thing that a call touches: a path, a simple command, a URL. */
export interface Subject {
  /** What rules are matched against. */
  text: string;
  /** Other spellings (the raw text, the name without its folder) on which a deny or ask also bites, an allow never. */
  also?: readonly string[];
  /** The spelling for the model, where `text` would say more than may be known before it is allowed. */
  named?: string;
  /** What the call does with it, for a person: "writes a.txt". */
  reason?: string;
  /** Why it cannot be known what this will do; then only a rule for `*` can allow it. */
  opaque?: string;
  /** What makes it opaque, where that is options of a known program: an allow rule that spells all of them out may allow it. */
  options?: readonly string[];
  /** `text` and `also` are patterns: a deny or ask bites when it has a text in common with them, an allow must cover them whole. */
  glob?: boolean;
  /** The texts that the pattern stands for where they are known: then a deny or ask bites on these alone. */
  names?: readonly string[];
  /** A pattern of what `text` stands for where that is not one text: a deny or ask that has a text in common with it makes it ask. */
  becomes?: string;
  /** The call reaches everything below the folder `text`: a deny or ask that may apply there makes it ask. */
  below?: boolean;
  /** The call reads what lies below the folder `text`: a deny that names something there makes it ask. */
  within?: boolean;
  /** It only says where other commands run: what rules say of everything does not count, and nothing said is allowed. */
  changesDirectory?: boolean;
  /** The call does it only if its text is read in an unusual way: a deny bites, and nothing else counts. */
  isAlternativeReading?: boolean;
  /** The interpreter that makes it opaque: a rule of the user that allows the interpreter (`node *`) may allow it. */
  interpreter?: string;
  /** Why a person must agree each time, whatever the rules and approvals allow. A deny still denies. */
  confirm?: string;
}

/** What a call needs permission for. As strict as the strictest of its subjects. */
export interface PermissionRequest {
  /** A permission name of the rules: read, edit, bash, external_directory, … */
  permission: string;
  subjects: readonly Subject[];
  /** Patterns that "always" would allow from now on; empty where nothing safe can be offered. */
  always: readonly string[];
  /** The person asked for just this by name, which answers what the rules would ask. A deny still denies. */
  requested?: boolean;
}

/** The verdict of the gate over a call. */
export type Decision =
  | { outcome: "allowed" }
  /** `plugin` is who said so, where it is no rule of the configuration. */
  | { outcome: "denied"; permission: string; subject: string; rule: Rule; plugin?: string }
  /** `cause` is set where the user said no to something else: another call of the step, or the session, by closing it. */
  | { outcome: "rejected"; feedback?: string; cause?: "step" | "closed" }
  /** Nobody answered. `problem` says why. */
  | { outcome: "unasked"; problem: string }
  | { outcome: "cancelled" };
