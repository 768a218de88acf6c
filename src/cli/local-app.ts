import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { App } from "../app.ts";
import { codeOf, messageOf, UserError } from "../base/errors.ts";
import type { Project } from "../conversation/project.ts";
import { writeNotice } from "./terminal/output.ts";
import { version } from "./command-line/version.ts";

/** Opens the app and the project of a folder, by default the working directory. */
export async function openLocalApp(folder = "."): Promise<{ app: App; project: Project }> {
  const app = openApp();
  const project = await app.projects.open({ cwd: await existingFolder(folder), additionalDirectories: [] });
  return { app, project };
}

/** Opens the app without a project. Prints warnings to stderr. */
export function openApp(): App {
  return new App({ env: process.env, platform: process.platform, version, onWarning: writeNotice });
}

/** Returns the absolute real path of a folder. Throws {@link UserError} when it does not exist. */
export async function existingFolder(folder: string): Promise<string> {
  const path = await realFolder(folder);
  if (!(await stat(path)).isDirectory()) throw new UserError(`${folder} is not a folder.`);
  return path;
}

async function realFolder(folder: string): Promise<string> {
  try {
    return await realpath(resolve(folder));
  } catch (error) {
    const isMissing = codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
    const missing =
      folder === "." ? "The working directory no longer exists." : `Folder not found: ${folder}`;
    throw new UserError(isMissing ? missing : messageOf(error), { cause: error });
  }
}
