import { App } from "../app.ts";
import type { Project } from "../session/project.ts";
import { version } from "./version.ts";

/** The program's parts for the folder that a command is called in. */
export async function localApp(): Promise<{ app: App; project: Project }> {
  const app = new App({ env: process.env, platform: process.platform, version });
  const project = await app.openProject({ cwd: process.cwd(), additionalDirectories: [] });
  return { app, project };
}
