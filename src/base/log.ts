/** Where the program says what happened to whoever repairs it. Never receives keys or the text of conversations. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogFields = Record<string, string | number | boolean | undefined>;

/** The log with fields that each of its lines has, such as a session's id. */
export function withFields(log: Log, fields: LogFields): Log {
  return {
    debug: (message, more) => log.debug(message, { ...fields, ...more }),
    info: (message, more) => log.info(message, { ...fields, ...more }),
    warn: (message, more) => log.warn(message, { ...fields, ...more }),
    error: (message, more) => log.error(message, { ...fields, ...more }),
  };
}

/** For tests and for callers that have nobody to tell. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
