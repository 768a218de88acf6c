/** Log for developers. Never receives keys or the text of conversations. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogFields = Record<string, string | number | boolean | undefined>;

/** Returns a log that adds fields, such as a session's id, to each line. */
export function withFields(log: Log, fields: LogFields): Log {
  return {
    debug: (message, more) => log.debug(message, { ...fields, ...more }),
    info: (message, more) => log.info(message, { ...fields, ...more }),
    warn: (message, more) => log.warn(message, { ...fields, ...more }),
    error: (message, more) => log.error(message, { ...fields, ...more }),
  };
}

/** Discards all lines. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
