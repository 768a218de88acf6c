import { createContext, Script } from "node:vm";
import { codeOf } from "../../base/errors.ts";

/** Runs synchronous work with a time limit, such as a backtracking regular expression. */
export type TimeLimit = <T extends boolean | object>(work: () => T) => T;

/** Throws `fail()` if the work takes longer. Creating it takes 3 ms, each call 0.1 ms. */
export function createTimeLimit(limitMs: number, fail: () => Error): TimeLimit {
  const script = new Script("work()");
  const global: { work: () => void } = { work: () => {} };
  const context = createContext(global);
  return <T extends boolean | object>(work: () => T): T => {
    const results: T[] = [];
    global.work = () => void results.push(work());
    try {
      script.runInContext(context, { timeout: limitMs });
    } catch (error) {
      throw codeOf(error) === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? fail() : error;
    }
    const [result] = results;
    if (result === undefined) throw fail();
    return result;
  };
}
