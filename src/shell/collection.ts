import { dirname, isAbsolute } from "node:path/posix";
import { addCommand } from "./command.ts";
import type { EvalContext, Scan, ShellContext, ShellEffect, SimpleCommand } from "./facts.ts";

/** Maximum number of parts; above, the whole line is opaque. */
const partLimit = 400;

/** The distinct parts of one command line. Throws if there are more than the limit. */
export class Collection implements Scan {
  readonly context: ShellContext;
  readonly #parts = new Map<string, ShellEffect>();
  readonly #resolved = new Map<string, string>();
  #isRearranged = false;

  constructor(context: ShellContext) {
    this.context = context;
  }

  get parts(): ShellEffect[] {
    return [...this.#parts.values()];
  }

  add(part: ShellEffect): void {
    // Parts are equal if everything except the reason is equal.
    const { reason: _, ...judged } = part;
    const key = JSON.stringify(judged);
    if (!this.#parts.has(key)) this.#parts.set(key, part);
    if (this.#parts.size > partLimit) throw new Error(`it has more than ${partLimit} parts`);
  }

  invalidateListings(): void {
    this.#isRearranged = true;
  }

  get areListingsStale(): boolean {
    return this.#isRearranged;
  }

  addWrapped(command: SimpleCommand, evalContext: EvalContext): void {
    addCommand(this, command, { ...evalContext, depth: evalContext.depth + 1 });
  }

  realPath(base: string, named: string): string {
    const path = this.context.readPath?.(named) ?? named;
    let current = isAbsolute(path) ? "/" : base;
    for (const component of path.split("/")) {
      if (component === "..") current = dirname(this.#resolve(current));
      else if (component !== "" && component !== ".")
        current = current === "/" ? `/${component}` : `${current}/${component}`;
    }
    return this.#resolve(current);
  }

  #resolve(path: string): string {
    const known = this.#resolved.get(path);
    if (known !== undefined) return known;
    const real = this.context.resolve(path);
    this.#resolved.set(path, real);
    return real;
  }
}
