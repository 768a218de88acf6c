import { readFile, stat } from "node:fs/promises";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import { describeIssue } from "../../config/files/expectation.ts";
import { type SessionFile, sessionFileSchema } from "../../reports/session-file.ts";

/** The file is read into memory as a whole. */
const fileLimitBytes = 256 * 1024 * 1024;
/** Maximum nesting depth of objects and lists; exported files have about twelve. */
const depthLimit = 200;
/** Maximum time value, in milliseconds since 1970 (ECMAScript, 21.4.1.1). */
const maxTime = 8.64e15;

/** Reads a file written by `sessions export --format json`. Throws {@link UserError} when it is invalid. */
export async function readSessionFile(path: string): Promise<SessionFile> {
  const refuse = (why: string) => new UserError(`${path} is not an exported session: ${why}.`);
  const value = parseJson(await readText(path));
  if (value === undefined) throw refuse("invalid or incomplete JSON");
  const wrong = findInvalidReason(value);
  if (wrong !== undefined) throw refuse(wrong);
  const parsed = sessionFileSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const { field, message } = issue
    ? describeIssue(issue, value)
    : { field: "", message: "it has another form" };
  throw refuse(field === "" ? message : `${field} ${message}`);
}

async function readText(path: string): Promise<string> {
  try {
    const found = await stat(path);
    // Reading a pipe or a device may never end.
    if (!found.isFile()) throw new UserError(`${path} is not a file.`);
    if (found.size > fileLimitBytes)
      throw new UserError(
        `${path} has ${found.size} bytes; sessions of up to ${fileLimitBytes} are imported.`,
      );
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${path} cannot be read: ${codeOf(error) ?? messageOf(error)}.`, { cause: error });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Checks what the schema cannot: nesting depth and time ranges. Works level by level, without recursion. */
function findInvalidReason(value: unknown): string | undefined {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > depthLimit) return `it nests more than ${depthLimit} levels`;
    const records = level.filter((one) => typeof one === "object" && one !== null);
    if (records.some((one) => "time" in one && !hasTimes(one.time))) return "it contains an invalid time";
    level = records.flatMap((one) => Object.values(one));
  }
  return undefined;
}

function hasTimes(time: unknown): boolean {
  if (typeof time !== "object" || time === null) return true;
  const numbers = Object.values(time).filter((moment) => typeof moment === "number");
  return numbers.every((moment) => moment >= 0 && moment <= maxTime);
}
