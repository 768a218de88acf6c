import { z } from "zod";

export const actionSchema = z.enum(["allow", "ask", "deny"]);
export type Action = z.infer<typeof actionSchema>;

/** The permission to run a command outside the sandbox. */
export const sandboxPermission = "sandbox";
/** The permission of a command in the sandbox to connect to a host. */
export const connectPermission = "connect";

/** In `permission` and `pattern`, `*` matches any characters and `?` exactly one. */
export interface Rule {
  permission: string;
  pattern: string;
  action: Action;
  /** Whether the rule is a user's approval. Approvals do not cover code that an interpreter runs. */
  isApproval?: boolean;
  /** Whether the rule asks where it would allow what cannot be undone. Only the built-in default does. */
  asksIfIrreversible?: boolean;
}

/** Rules in order; the last match wins. */
export type Ruleset = readonly Rule[];

/** One thing that a call uses: a path, a simple command, a URL. */
export interface Subject {
  /** The text that rules match. */
  text: string;
  /** Other spellings (the raw text, the name without its folder). A deny or ask matches them too, an allow does not. */
  also?: readonly string[];
  /** The spelling shown to the model, if `text` reveals too much before the call is allowed. */
  named?: string;
  /** How the call uses it, phrased for the user: "writes a.txt". */
  reason?: string;
  /** Why it asks if no rule matches. */
  asked?: string;
  /** Why its effects are unknown. Then only a rule for `*` can allow it. */
  opaque?: string;
  /** The options that make it opaque. A rule that spells all of them out may allow it. */
  options?: readonly string[];
  /** `text` and `also` are patterns. A deny or ask applies if it overlaps them, an allow only if it covers them. */
  glob?: boolean;
  /** The texts that match the pattern, if known. A deny or ask then applies to these only. */
  names?: readonly string[];
  /** Pattern of the values that `text` may have when the command runs. A deny or ask that overlaps it becomes an ask. */
  becomes?: string;
  /** The call changes everything below the folder `text`. A deny or ask that may apply there turns into an ask. */
  below?: boolean;
  /** The call reads everything below the folder `text`. A deny for something there turns into an ask. */
  within?: boolean;
  /** The command only changes the working directory. Rules for `*` are ignored, and it is allowed if no rule matches. */
  changesDirectory?: boolean;
  /** The call has this effect only if the shell parses the text in an unusual way. Only a deny applies. */
  isAlternativeReading?: boolean;
  /** The interpreter that makes it opaque. A user's rule for the interpreter (`node *`) may allow it. */
  interpreter?: string;
  /** Why it cannot be undone: "publishes a package". */
  irreversible?: string;
  /** Why the user must confirm each time, even if rules or approvals allow it. A deny still applies. */
  confirm?: string;
}

/** A permission that a call needs. The strictest verdict on a subject applies to all of them. */
export interface PermissionRequest {
  /** A permission name of the rules: read, edit, bash, external_directory, … */
  permission: string;
  subjects: readonly Subject[];
  /** Patterns that "always allow" offers; empty if no safe one exists. */
  always: readonly string[];
  /** It is an effect of a command line, which a sandbox would confine. */
  ofCommand?: true;
  /** Only rules with this permission's own name apply, not those for `*`. */
  byNameOnly?: true;
  /** The user named exactly this in the prompt, so an ask becomes an allow. A deny still applies. */
  requested?: boolean;
}

/** The answers to the question about a call, if they are not the usual ones. */
export interface QuestionAnswers {
  readonly allow: string;
  /** Allows the call in another way, which the call itself carries out. */
  readonly allowOther?: string;
  readonly reject: string;
  /** Added to `reject` where the user is asked for the reason next. */
  readonly rejectWhy: string;
  /** Asks for the reason of the rejection. */
  readonly why: string;
}

/** The gate's verdict on a call. */
export type Decision =
  /**
   * `isSandboxed` is set if the session's approval setting was *Sandboxed*: a command must run in a sandbox. `isOther` is
   * set if the user chose `allowOther` of {@link QuestionAnswers}.
   */
  | { outcome: "allowed"; isSandboxed?: true; isOther?: true }
  /** `plugin` is set if a plugin denied it, not a configured rule. */
  | { outcome: "denied"; permission: string; subject: string; rule: Rule; plugin?: string }
  /**
   * `cause` is set if the user rejected another call of the step, or closed the session. `feedback` is the user's reason
   * for this or that other call; the turn continues with it.
   */
  | { outcome: "rejected"; feedback?: string; cause?: "step" | "closed" }
  /** The question got no valid answer; `problem` says why. */
  | { outcome: "unasked"; problem: string }
  | { outcome: "cancelled" };
