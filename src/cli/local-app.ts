import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { App } from "../app.ts";
import { codeOf, messageOf, UserError } from "../base/errors.ts";
import type { Project } from "../conversation/project.ts";
import { writeNotice } from "./terminal/output.ts";
import { version } from "./command-line/version.ts";

/** The program's parts for a folder; the one that a command is called in unless given. */
export async function localApp(folder = "."): Promise<{ app: App; project: Project }> {
  const app = openApp();
  const project = await app.projects.open({ cwd: await existingFolder(folder), additionalDirectories: [] });
  return { app, project };
}

/** The program's parts without any folder. What is wrong with the store is told on stderr. */
export function openApp(): App {
  return new App({ env: process.env, platform: process.platform, version, onWarning: writeNotice });
}

/** Absolute, without links. Throws {@link UserError} where there is no such folder. */
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
    const said = folder === "." ? "The working directory is gone." : `There is no folder ${folder}.`;
    throw new UserError(isMissing ? said : messageOf(error), { cause: error });
  }
}
