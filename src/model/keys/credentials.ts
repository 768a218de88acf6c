import { rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { randomUuid } from "../../base/text/hash.ts";
import checks from "../../../schema/checks.json" with { type: "json" };
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import { generatedCheck } from "../../base/json-schema.ts";
import { fastValidator } from "../../base/validator.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { retryInUse } from "../../base/files/retry-in-use.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import { lockFolderOf, updateSharedFile } from "../../storage/json/lock.ts";

export const credentialsSchema = z.record(z.string(), z.looseObject({ apiKey: z.string().optional() }));
const storedCredentials = fastValidator(generatedCheck(checks, "credentials"), credentialsSchema);

const fileLimitBytes = 1024 * 1024;

/** Keys by provider. */
export type Credentials = z.infer<typeof credentialsSchema>;

export const credentialsPath = (dataFolder: string): string => join(dataFolder, "credentials.json");

/** Loads the stored keys. Empty without a file; throws a {@link UserError} if the file is invalid. */
export async function loadCredentials(dataFolder: string): Promise<Credentials> {
  const path = credentialsPath(dataFolder);
  const text = await readIfThere(path);
  if (text === undefined) return {};
  const parsed = storedCredentials.safeParse(parseOrUndefined(text));
  if (parsed.success) return parsed.data;
  // The reason would quote the file, which contains keys.
  throw new UserError(
    `${path} is not valid: expected {"provider": {"apiKey": "…"}}. Fix or delete it, then run "fairlead setup".`,
  );
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Stores or removes a provider's key. Only the user can read the file. */
export async function saveCredential(
  dataFolder: string,
  provider: string,
  apiKey: string | undefined,
): Promise<void> {
  const path = credentialsPath(dataFolder);
  const change = async () => {
    const { [provider]: before, ...others } = await loadCredentials(dataFolder);
    const credentials = apiKey === undefined ? others : { ...others, [provider]: { ...before, apiKey } };
    await replaceFile(path, `${JSON.stringify(credentials, undefined, 2)}\n`);
  };
  try {
    await updateSharedFile(path, lockFolderOf(dataFolder), change);
  } catch (thrown) {
    if (thrown instanceof UserError) throw thrown;
    throw notWritableError(path, thrown);
  }
}

function notWritableError(path: string, thrown: unknown): UserError {
  return new UserError(
    `${path} cannot be written: ${messageOf(thrown)}. Make its folder writable, or set XDG_DATA_HOME to one that is.`,
    { cause: thrown },
  );
}

async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomUuid()}.tmp`;
  try {
    await makeFolder(dirname(path), 0o700);
    await writeFile(temporary, text, { mode: 0o600, flush: true, flag: "wx" });
    await retryInUse(() => rename(temporary, path));
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    const found = statOrUndefined(path);
    if (found === undefined) return undefined;
    // Reading a pipe would never end.
    if (!found.isFile() || found.size > fileLimitBytes) return "";
    return (await readRegularFile(path)).toString("utf8");
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    throw new UserError(`${path} cannot be read: ${codeOf(thrown) ?? "unknown reason"}.`, { cause: thrown });
  }
}
