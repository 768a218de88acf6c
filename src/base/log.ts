/** Where the program says what happened to whoever repairs it. Never receives keys or the text of conversations. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogFields = Record<string, string | number | boolean | undefined>;

/** For tests and for callers that have nobody to tell. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
