import { getToolPermission } from "../../permission/parse-rules.ts";
import { UsageError } from "../command-line/usage.ts";

/** Permissions that --allow cannot give: they are questions to a user. */
const questions: ReadonlySet<string> = new Set(["doom_loop", "question", "plan_enter", "plan_exit"]);

/** Parses a rule of --allow: `PERMISSION` or `PERMISSION:PATTERN`. Throws {@link UsageError}. */
export function parseAllowed(written: string): { permission: string; pattern: string } {
  const wrong = (problem: string) => new UsageError(`--allow ${written}: ${problem}`, "run");
  const called = /^(\w+)\((.*)\)$/s.exec(written);
  if (called !== null) throw wrong(`write a rule as ${called[1]?.toLowerCase() ?? ""}:${called[2] ?? ""}`);
  const at = written.indexOf(":");
  const name = at === -1 ? written : written.slice(0, at);
  const pattern = at === -1 ? "*" : written.slice(at + 1).trim();
  if (/[*?\s]/.test(name) || name === "")
    throw wrong('a rule begins with one permission, as in "edit" or "bash:npm test*"');
  if (pattern === "") throw wrong("the pattern after the colon is empty");
  if (questions.has(name)) throw wrong("this question needs a user and cannot be allowed");
  return { permission: getToolPermission(name), pattern };
}
