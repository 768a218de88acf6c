import { lstatSync, type Stats } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../base/errors.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import type { App } from "../../app.ts";
import { ignoredVariables, type UserFolders } from "../../config/paths.ts";
import type { Api } from "../../config/api.ts";
import type { Project } from "../../conversation/project.ts";
import type { Call } from "../command-line/command.ts";
import { unreadableEntry } from "../compile-cache.ts";
import { type Finding, formatFinding } from "./finding.ts";
import { formatterFindings } from "./formatter-findings.ts";
import { permissionFindings } from "./permission-findings.ts";
import { openLocalApp } from "../local-app.ts";
import { print, printJson } from "../terminal/output.ts";
import { editorFindings } from "./editor-findings.ts";
import { mcpFindings, otherServerFindings } from "./mcp-findings.ts";
import { agentFindings, providerFindings, unusedFindings } from "./provider-findings.ts";
import { languageFindings } from "./language-findings.ts";
import { sandboxFinding } from "./sandbox-findings.ts";
import { sshFindings } from "./ssh-findings.ts";
import { damageFindings, worktreeFindings } from "./store-findings.ts";
import { findSystem, systemFindings } from "./system-findings.ts";
import { styleFor } from "../terminal/style.ts";
import { version } from "../command-line/version.ts";

/** Checks the configuration, providers and storage. Returns 1 when the user must fix something. */
export async function doctor(call: Call): Promise<number> {
  const { app, project } = await openLocalApp(call.text("cwd"));
  const home = { home: app.home, env: process.env, platform: process.platform };
  const findings = [
    { what: "Fairlead", found: `${version} on Node ${process.versions.node}` },
    ...systemFindings(await findSystem(process.env)),
    folderFinding(project),
    ...modelFindings(project),
    ...(await providerFindings(project, call.has("offline"))),
    ...(await unusedFindings(project)),
    ...agentFindings(project),
    ...(await mcpFindings(app, project, call.has("offline"))),
    ...(await otherServerFindings(project, home)),
    ...(await editorFindings(home)),
    ...(await sshFindings(process.env)),
    await storeFinding(app.folders),
    ...(await damageFindings(app)),
    ...(await worktreeFindings(app)),
    ...(await folderFindings(app.folders)),
    ...specialFileFindings(app),
    ...variableFindings(),
    ...consentFindings(project),
    ...(await languageFindings(project)),
    ...(await formatterFindings(project)),
    ...(await permissionFindings(project)),
    await sandboxFinding(project),
    ...(await noteFindings(app, project)),
    ...project.problems.map((problem) => ({ what: "Configuration", found: "a problem", todo: problem })),
  ];
  await app.close();
  const style = styleFor(process.stdout, process.env);
  const width = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
  if (call.has("json")) await printJson(findings);
  else for (const finding of findings) await print(formatFinding(finding, { style, width }));
  return findings.some(({ todo }) => todo !== undefined) ? 1 : 0;
}

function folderFinding({ workspace }: Project): Finding {
  const git =
    workspace.worktree === undefined ? "not in a git repository" : `git repository ${workspace.worktree}`;
  return { what: "Folder", found: `${workspace.cwd} (${git})` };
}

/** Describes the chosen model and the features that it runs without. */
function modelFindings({ models }: Project): Finding[] {
  const chosen = models.defaultModel();
  if (chosen.outcome === "none") return [{ what: "Model", found: "none", todo: chosen.error.message }];
  const { ref, limit, api = "chat", defaultEffort } = chosen.model;
  const missing = models.missingFeatures(chosen.model);
  const window = missing.find(({ feature }) => feature === "known context window");
  const context =
    limit.context === undefined
      ? "context unknown"
      : `${limit.context.toLocaleString("en")} tokens of context`;
  const effort = ref.variant ?? defaultEffort;
  const details = [apiNames[api], ...(effort === undefined ? [] : [`effort ${effort}`]), context];
  return [
    {
      what: "Model",
      found: `${ref.provider}/${ref.model} (${details.join(", ")})`,
      ...(window && { note: window.advice }),
    },
    ...missing
      .filter((one) => one !== window)
      .map(({ feature, advice }) => ({ what: "Model", found: `runs without ${feature}`, note: advice })),
  ];
}

const apiNames: Readonly<Record<Api, string>> = {
  chat: "chat completions",
  responses: "Responses",
  messages: "Messages",
};

/** Reports settings that wait for consent. Not a problem: the project works without them. */
function consentFindings({ consent }: Project): Finding[] {
  if (consent === undefined) return [];
  const found = `${consent.wants.length} settings wait for your consent: fairlead trust add ${consent.folder}`;
  return [{ what: "Trust", found }];
}

/** Lists settings that were read but have no effect; no action needed. */
async function noteFindings(app: App, { workspace }: Project): Promise<Finding[]> {
  const { loaded } = await app.projects.readConfiguration(workspace.cwd);
  return loaded.notes.map((note) => ({ what: "Note", found: note }));
}

async function storeFinding({ data }: UserFolders): Promise<Finding> {
  const problem = await findWriteProblem(data);
  if (problem === undefined) return { what: "Sessions", found: `stored in ${data}` };
  return {
    what: "Sessions",
    found: "cannot be stored",
    todo: adviseWritable(data, "XDG_DATA_HOME", problem),
  };
}

/** Reports special files, such as pipes, in place of the log or the compile cache. */
function specialFileFindings({ logPath, folders }: App): Finding[] {
  const log = findEntry(logPath);
  const isLogOdd = log !== undefined && !log.isFile() && !log.isSymbolicLink();
  const code = unreadableEntry(join(folders.cache, "code"));
  return [
    ...(isLogOdd ? [specialFileFinding("Log", "cannot be written", logPath)] : []),
    ...(code === undefined ? [] : [specialFileFinding("Cache", "is not used: starts are slower", code)]),
  ];
}

/** Returns undefined also where a file is in place of a folder, which other findings report. */
function findEntry(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

const specialFileFinding = (what: string, found: string, path: string): Finding => ({
  what,
  found,
  todo: `${path} is not a regular file. Move it away.`,
});

/** Reports ignored folder variables: their values are not absolute paths. */
function variableFindings(): Finding[] {
  return ignoredVariables(process).map((name) => ({
    what: "Environment",
    found: `${name} is ignored: "${process.env[name]}" is not an absolute path`,
    todo: `Set ${name} to an absolute path, or remove it.`,
  }));
}

/** Reports log and cache folders that are not writable. */
async function folderFindings({ state, cache }: UserFolders): Promise<Finding[]> {
  const locations = [
    { what: "Log", found: "cannot be written", folder: state, variable: "XDG_STATE_HOME" },
    {
      what: "Cache",
      found: "cannot be written: starts are slower",
      folder: cache,
      variable: "XDG_CACHE_HOME",
    },
  ];
  const problems = await Promise.all(locations.map(({ folder }) => findWriteProblem(folder)));
  return locations.flatMap(({ what, found, folder, variable }, index) => {
    const problem = problems[index];
    return problem === undefined ? [] : [{ what, found, todo: adviseWritable(folder, variable, problem) }];
  });
}

const adviseWritable = (folder: string, variable: string, problem: string): string =>
  `Make ${folder} writable, or set HOME or ${variable} to a place that is: ${problem}`;

/** Returns why a folder is not writable; undefined when it is. Creates a missing folder. */
async function findWriteProblem(folder: string): Promise<string | undefined> {
  const probe = join(folder, `.probe-${process.pid}`);
  try {
    await makeFolder(folder, 0o700);
    await writeFile(probe, "", { mode: 0o600, flag: "wx" });
    await rm(probe);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
