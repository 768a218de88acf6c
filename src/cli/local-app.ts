import { App } from "../app.ts";
import type { Project } from "../session/project.ts";
import { version } from "./version.ts";

/** The program's parts for a folder; the one that a command is called in unless given. */
export async function localApp(cwd = process.cwd()): Promise<{ app: App; project: Project }> {
  const app = new App({ env: process.env, platform: process.platform, version });
  const project = await app.openProject({ cwd, additionalDirectories: [] });
  return { app, project };
}
