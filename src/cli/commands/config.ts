import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { makeFolder } from "../../base/files/make-folder.ts";
import { setInFile } from "../../config/edit.ts";
import { lockFolderOf } from "../../storage/json/lock.ts";
import { findUserConfigFile } from "../user-config-file.ts";
import type { Configuration } from "../../project/projects.ts";
import { UserError } from "../../base/errors.ts";
import { removeSecretForms } from "../../base/secrets/secret-forms.ts";
import type { Secrets } from "../../base/secrets/secrets.ts";
import {
  checkConfig,
  parseConfigFile,
  type ParsedFile,
  createProblemAtPath,
  listProblems,
} from "../../config/files/config-file.ts";
import { readConfigText } from "../../config/files/config-text.ts";
import { type ConfigValue, findOrigins } from "../../config/origins.ts";
import { homeFolder } from "../../config/paths.ts";
import { substitute } from "../../config/substitution.ts";
import type { Call } from "../command-line/command.ts";
import { existingFolder, openApp } from "../local-app.ts";
import { print, printJson, printTable, writeNotice, writeToStderr } from "../terminal/output.ts";

/** Shows each effective value with its file and line. Hides keys. */
export async function showConfig(call: Call): Promise<number> {
  const read = await openApp().projects.readConfiguration(await existingFolder(call.text("cwd") ?? "."));
  const wanted = call.operands[0]?.split(".") ?? [];
  const values = findOrigins(read.loaded, await readSources(read))
    .filter(({ path }) => wanted.every((key, at) => path[at] === key))
    .map((value) => ({ ...value, value: hideSecret(value, read.secrets) }));
  if (call.has("json")) {
    const { problems } = read;
    const { notes, withheld } = read.loaded;
    await printJson({ values: values.map(toJson), problems, notes, withheld });
  } else {
    await printTable(columns, values.map(toRow));
    writeNotices(read);
  }
  if (values.length === 0 && wanted.length === 0)
    writeNotice("nothing is configured; start with: fairlead setup");
  if (values.length > 0 || wanted.length === 0) return 0;
  writeNotice(`nothing is set under ${wanted.join(".")}`);
  return 1;
}

/** Lists the configuration files, lowest precedence first, and the storage paths. */
export async function configPaths(call: Call): Promise<number> {
  const app = openApp();
  const { loaded, files: candidates } = await app.projects.readConfiguration(
    await existingFolder(call.text("cwd") ?? "."),
  );
  const scopes = new Map(loaded.sources.map(({ path, scope }) => [path, scope]));
  const paths = [
    ...candidates,
    ...loaded.sources.map(({ path }) => path).filter((path) => !candidates.includes(path)),
  ];
  const files = paths.map((path) => ({ path, isRead: scopes.has(path), scope: scopes.get(path) }));
  const folders = {
    sessions: join(app.folders.data, "storage"),
    credentials: join(app.folders.data, "credentials.json"),
    log: app.logPath,
  };
  if (call.has("json")) {
    await printJson({ files, folders });
    return 0;
  }
  const rows = files.map(({ path, isRead, scope }) => [isRead ? "read" : "not found", scope ?? "", path]);
  const others = Object.entries(folders).map(([name, path]) => [name, "", path]);
  await printTable(
    [{ name: "file" }, { name: "whose" }, { name: "path", keepsEnd: true }],
    [...rows, ...others],
  );
  return 0;
}

/** Lists configuration errors with file, line, column and the expected value. Returns 1 when there are any. */
export async function checkConfigFiles(call: Call): Promise<number> {
  const { problems, notes } =
    call.operands.length === 0
      ? await checkFolder(await existingFolder(call.text("cwd") ?? "."))
      : await checkFiles(call.operands, openApp().home);
  if (call.has("json")) await printJson({ problems, notes });
  else {
    for (const problem of problems) await print(problem);
    for (const note of notes) writeNotice(note);
    if (problems.length === 0) await print("No problems found.");
  }
  return problems.length === 0 ? 0 : 1;
}

/** Prints the JSON schema of configuration files, or stores it next to the user's file. */
export async function configSchema(call: Call): Promise<number> {
  const path = fileURLToPath(new URL("../schema/config.schema.json", import.meta.url));
  const schema = await readFile(path, "utf8");
  if (call.has("install")) await installSchema(schema);
  else process.stdout.write(schema);
  return 0;
}

const schemaName = "fairlead.schema.json";

/** Replaces an installed schema of an earlier version. */
async function installSchema(schema: string): Promise<void> {
  const { folders } = openApp();
  const file = findUserConfigFile(folders.config);
  await makeFolder(folders.config, 0o700);
  await writeFile(join(folders.config, schemaName), schema);
  const setting = { path: ["$schema"], value: `./${schemaName}` };
  await setInFile(file, [setting], lockFolderOf(folders.data));
  await print(`Editors complete and check ${file} by ${join(folders.config, schemaName)}.`);
}

interface CheckResult {
  readonly problems: readonly string[];
  readonly notes: readonly string[];
}

async function checkFolder(folder: string): Promise<CheckResult> {
  const { problems, loaded } = await openApp().projects.readConfiguration(folder);
  return { problems, notes: loaded.notes };
}

async function checkFiles(paths: readonly string[], home: string): Promise<CheckResult> {
  const checked = await Promise.all(paths.map((path) => checkFile(resolve(path), home)));
  return {
    problems: checked.flatMap(({ problems }) => problems),
    notes: checked.flatMap(({ notes }) => notes),
  };
}

async function checkFile(path: string, home: string): Promise<CheckResult> {
  const read = await readConfigText(path);
  if (read.outcome === "missing") throw new UserError(`File not found: ${path}`);
  if (read.outcome === "refused") return { problems: [`${path}: ${read.problem}`], notes: [] };
  const file = parseConfigFile(path, read.text);
  const { value, failures } = await substitute(file.value, { env: process.env, home, path });
  const { problems, notes } = checkConfig(file, value, failures);
  const filled = failures.map(({ path, message }) => createProblemAtPath(file, path, message));
  const all = [...listProblems(file), ...filled, ...problems];
  return {
    problems: all.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`),
    notes,
  };
}

const columns = [{ name: "setting", keepsEnd: true }, { name: "value" }, { name: "from", keepsEnd: true }];

/** Reads the source files again: sessions do not store them. */
async function readSources({ loaded }: Configuration): Promise<Map<string, ParsedFile>> {
  const files = loaded.layers.map(async ({ source }) => {
    const text = process.env[source] ?? (await readText(source));
    return [source, parseConfigFile(source, text)] as const;
  });
  return new Map(await Promise.all(files));
}

async function readText(path: string): Promise<string> {
  const read = await readConfigText(path);
  return read.outcome === "read" ? read.text : "";
}

/** Hides a value that may be a key, unless it is only a reference such as `{env:NAME}`. */
function hideSecret({ path, value, written }: ConfigValue, secrets: Secrets): unknown {
  if (typeof value !== "string" || !mayBeSecret(path)) return redactKeys(value, secrets);
  const isReference = written !== undefined && /^"(?:[\w.-]+ )?\{(?:env|file):[^{}]*\}"$/.test(written);
  return isReference ? written.slice(1, -1) : "(hidden)";
}

/** Redacts keys recursively: lists may contain objects (plugin options), and texts a password (addresses). */
function redactKeys(value: unknown, secrets: Secrets): unknown {
  if (typeof value === "string") return removeSecretForms(secrets.redact(value));
  if (Array.isArray(value)) return value.map((item) => redactKeys(item, secrets));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]): [string, unknown] => [
    key,
    mayBeSecret([key]) ? "(hidden)" : redactKeys(item, secrets),
  ]);
  return Object.fromEntries(entries);
}

const holdersOfSecrets: ReadonlySet<string> = new Set(["headers", "environment", "env"]);

function mayBeSecret(path: readonly string[]): boolean {
  const inHolder = path.slice(0, -1).some((key) => holdersOfSecrets.has(key));
  return inHolder || /key|token|secret|password|auth|cookie|credential/i.test(path.at(-1) ?? "");
}

function toJson({ path, value, source, scope, line, column }: ConfigValue) {
  return { setting: path.join("."), value, source, scope, line, column };
}

function toRow({ path, value, source, line }: ConfigValue): string[] {
  return [
    path.join("."),
    typeof value === "string" ? value : JSON.stringify(value),
    formatLocation(source, line),
  ];
}

function formatLocation(source: string, line: number): string {
  const home = homeFolder(process);
  return `${source.startsWith(`${home}/`) ? `~${source.slice(home.length)}` : source}:${line}`;
}

function writeNotices({ problems, loaded, consent }: Configuration): void {
  for (const problem of problems) writeNotice(problem);
  for (const note of loaded.notes) writeNotice(note);
  if (consent === undefined) return;
  writeNotice(`not in effect until you trust ${consent.folder} (fairlead trust add):`);
  for (const want of consent.wants) writeToStderr(`  ${want}`);
}
