import { closeSync, constants, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { DestinationStream, Logger } from "pino";
import type { Log, LogFields } from "./log.ts";
import { makeFolder } from "./files/make-folder.ts";
import { openRegularFileSync } from "./files/regular-file.ts";
import { removeSecretForms } from "./secrets/secret-forms.ts";
import { Secrets } from "./secrets/secrets.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface FileLogOptions {
  readonly level: LogLevel;
  readonly secrets?: Secrets;
  /** Also receives each line, for display in a terminal. */
  readonly mirror?: ((line: string) => void) | undefined;
}

/**
 * Returns a log that writes JSON lines, with secrets removed, to a file with mode 0600. Loads and opens nothing
 * before the first line.
 */
export function openFileLog(path: string, options: FileLogOptions): Log {
  const { level, secrets = new Secrets(), mirror } = options;
  let logger: Promise<OpenLogger> | undefined;
  const write = (line: LogLevel, message: string, fields: LogFields = {}) => {
    if (levels.indexOf(line) < levels.indexOf(level)) return;
    const redact = (text: string) => removeSecretForms(cut(secrets.redact(text)));
    const clean = { text: redact(message), fields: mapTexts(fields, redact) };
    mirror?.(toText(line, clean.text, clean.fields));
    logger ??= openLogger(path, level);
    logger
      .then(({ pino, mapStack }) => pino[line](mapTexts(clean.fields, mapStack), clean.text))
      .catch(() => process.stderr.write(`fairlead: ${clean.text}\n`));
  };
  return {
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
  };
}

function mapTexts(fields: LogFields, map: (text: string) => string): LogFields {
  const mapped = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === "string" ? map(value) : value,
  ]);
  return Object.fromEntries(mapped);
}

/** Longest text in a line, in characters. */
const textLimit = 4_000;

function cut(text: string): string {
  const over = text.length - textLimit;
  return over <= 0 ? text : `${text.slice(0, textLimit)} … ${over} more characters`;
}

function toText(level: LogLevel, message: string, fields: LogFields): string {
  // In a terminal a stack would hide the message.
  const shown = Object.entries(fields).filter(([name, value]) => value !== undefined && name !== "stack");
  return [level, message, ...shown.map(([name, value]) => `${name}=${value}`)].join(" ");
}

/** A log of this size is rotated. {@link oldLogCount} older files are kept on disk. */
const logLimitBytes = 10 * 1024 * 1024;
const oldLogCount = 3;

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

interface OpenLogger {
  pino: Logger;
  /** Replaces positions in bundled files with positions in the sources. */
  mapStack: (text: string) => string;
}

async function openLogger(path: string, level: LogLevel): Promise<OpenLogger> {
  const [{ pino }, { createStackMapper }] = await Promise.all([import("pino"), import("./stack-mapper.ts")]);
  await makeFolder(dirname(path), 0o700);
  if (sizeOf(path) > logLimitBytes) rotate(path);
  let file = openLogFile(path);
  let bytes = sizeOf(path);
  const rotating: DestinationStream = {
    write(line) {
      bytes += Buffer.byteLength(line);
      writeAll(file, line);
      if (bytes <= logLimitBytes) return;
      // Another process may have rotated it already.
      if (sizeOf(path) > logLimitBytes) rotate(path);
      closeSync(file);
      file = openLogFile(path);
      bytes = sizeOf(path);
    },
  };
  return {
    pino: pino({ level, base: { pid: process.pid } }, rotating),
    mapStack: createStackMapper(dirname(fileURLToPath(import.meta.url))),
  };
}

function openLogFile(path: string): number {
  return openRegularFileSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, 0o600);
}

/** Writes in a loop, because a nearly full disk may accept only a part. */
function writeAll(file: number, line: string): void {
  const bytes = Buffer.from(line);
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
}

/** Renames `x.log` to `x.log.1`, that one to `x.log.2`, and deletes the oldest. */
function rotate(path: string): void {
  rmSync(`${path}.${oldLogCount}`, { force: true });
  for (let number = oldLogCount - 1; number >= 0; number--) {
    const from = number === 0 ? path : `${path}.${number}`;
    if (statSync(from, { throwIfNoEntry: false })) renameSync(from, `${path}.${number + 1}`);
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
