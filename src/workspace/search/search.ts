import { once } from "../../base/async.ts";
import { UnusualIgnoreRulesError } from "./unusual-ignore-rules.ts";
import type { Search } from "./queries.ts";
import type { SearchEngine } from "./search-engine.ts";
import type { Watchdog } from "../process/watchdog.ts";

export interface SearchOptions {
  env: Readonly<Record<string, string | undefined>>;
  engine?: "ripgrep" | "javascript" | "auto";
  /** Ends running searches if the program is killed. */
  watchdog?: Watchdog;
  /** Interval of progress calls; default one second. */
  progressMs?: number;
}

/**
 * `engine` is for tests; by default the bundled ripgrep, one on the PATH of `env`, or JavaScript. The engines
 * see the same files and lines, but their expressions differ in details such as the meaning of `\w` beyond
 * ASCII.
 */
export function openSearch(options: SearchOptions): Search {
  const engine = once(() => loadEngine(options));
  const { progressMs = 1_000 } = options;
  return {
    files: async (query) => {
      const { findFiles } = await loadFinders();
      return withEngine(await engine(), (engine) => findFiles(engine, query, progressMs));
    },
    lines: async (query) => {
      const { findLines } = await loadFinders();
      return withEngine(await engine(), (engine) => findLines(engine, query, progressMs));
    },
    warmUp: async () => void (await Promise.all([engine(), loadFinders()])),
  };
}

const loadFinders = () => import("./find.ts");

/** Falls back to JavaScript where ripgrep cannot search. */
async function withEngine<T>(engine: SearchEngine, search: (engine: SearchEngine) => Promise<T>): Promise<T> {
  try {
    return await search(engine);
  } catch (error) {
    if (!(error instanceof UnusualIgnoreRulesError)) throw error;
    return search((await import("./search-javascript.ts")).javascriptEngine);
  }
}

async function loadEngine({ env, engine: wanted = "auto", watchdog }: SearchOptions): Promise<SearchEngine> {
  const { findRipgrep, ripgrepEngine } = await import("./search-ripgrep.ts");
  const program = wanted === "javascript" ? undefined : await findRipgrep(env);
  if (program !== undefined) return ripgrepEngine(program, watchdog);
  if (wanted === "ripgrep") throw new Error("ripgrep not found. Install it, or use another engine.");
  return (await import("./search-javascript.ts")).javascriptEngine;
}
