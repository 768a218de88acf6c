/** The functions that the program uses; the package has no types. */
declare module "fs-native-extensions" {
  /** Locks a range of an open file until it is closed; false when another open file has it. */
  export function tryLock(fd: number, offset?: number, length?: number): boolean;
  /** Exchanges the names of two files in one step. */
  export function swapSync(from: string, to: string): void;
}
