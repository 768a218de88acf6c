import { stat } from "node:fs/promises";
import { hostname } from "node:os";
import { isAbsolute } from "node:path";
import { codeOf, messageOf } from "../base/errors.ts";
import type { Folders } from "../conversation/project.ts";
import { invalidParams } from "./errors.ts";

const missing = "does not exist";

/**
 * Validates the folders of a setup and returns notices for the user. A missing additional folder is skipped with a
 * notice: an editor that stores its list of folders could otherwise not open the session again.
 */
export async function checkFolders(params: {
  cwd: string;
  additionalDirectories?: string[] | null;
}): Promise<{ folders: Folders; notices: string[] }> {
  const { cwd } = params;
  const problem = await findProblem("cwd", cwd);
  if (problem === missing)
    throw invalidParams(
      `cwd: the folder "${cwd}" ${missing} on this machine (${hostname()}). Choose another one; if the project is on another machine, start Fairlead there.`,
    );
  if (problem !== undefined) throw invalidParams(`cwd: the folder "${cwd}" ${problem}.`);
  const additionalDirectories: string[] = [];
  const notices: string[] = [];
  for (const path of params.additionalDirectories ?? []) {
    const reason = await findProblem("additionalDirectories", path);
    if (reason === undefined) additionalDirectories.push(path);
    else notices.push(`The folder ${path} ${reason}; the session continues without it.`);
  }
  return { folders: { cwd, additionalDirectories }, notices };
}

/** Returns why a folder cannot be used. Throws if its path is relative or it is not a folder. */
async function findProblem(name: string, path: string): Promise<string | undefined> {
  checkAbsolute(name, path);
  const found = await stat(path).catch((error: unknown) => ({ error }));
  if ("error" in found) {
    const code = codeOf(found.error);
    const isMissing = code === "ENOENT" || code === "ENOTDIR";
    return isMissing ? missing : `cannot be opened: ${messageOf(found.error)}`;
  }
  if (!found.isDirectory()) throw invalidParams(`${name}: "${path}" is not a folder.`);
  return undefined;
}

const windowsPath = /^(?:[A-Za-z]:|\\\\)/;

/** Throws if a path of the client is relative, or is one of another system. */
export function checkAbsolute(name: string, path: string): void {
  if (isAbsolute(path)) return;
  if (windowsPath.test(path))
    throw invalidParams(
      `${name} is a path of Windows ("${path}"), but Fairlead runs on ${hostname()} (${process.platform}) and maps no paths. Use an editor that names folders as that machine does, such as one that is connected to WSL, SSH or the container; or install Fairlead on Windows.`,
    );
  throw invalidParams(`${name} must be an absolute path, not "${path}".`);
}
