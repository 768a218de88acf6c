import { mkdirSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Logger } from "pino";
import type { Log, LogFields } from "./log.ts";
import { Secrets } from "./secrets.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Writes JSON lines, without the secrets, to a file that only this person can read. Nothing is loaded or opened before the first line. */
export function openFileLog(path: string, level: LogLevel, secrets = new Secrets()): Log {
  let logger: Promise<Logger> | undefined;
  const write = (line: LogLevel, message: string, fields: LogFields = {}) => {
    if (levels.indexOf(line) < levels.indexOf(level)) return;
    logger ??= openLogger(path, level);
    logger.then(
      (open) => open[line](withoutSecrets(fields, secrets), secrets.redact(message)),
      () => process.stderr.write(`fairlead: ${message}\n`),
    );
  };
  return {
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
  };
}

function withoutSecrets(fields: LogFields, secrets: Secrets): LogFields {
  const clean = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === "string" ? secrets.redact(value) : value,
  ]);
  return Object.fromEntries(clean);
}

/** The log and the one before it may have so much each, and what one process adds. */
const longestLogBytes = 10 * 1024 * 1024;

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

async function openLogger(path: string, level: LogLevel): Promise<Logger> {
  const { pino, destination } = await import("pino");
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  setAside(path);
  return pino({ level, base: { pid: process.pid } }, destination({ dest: path, sync: true, mode: 0o600 }));
}

/** A log that has grown large becomes the old one, whose place it takes. */
function setAside(path: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > longestLogBytes) renameSync(path, `${path}.old`);
}
