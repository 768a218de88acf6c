import { z } from "zod";
import { deferred, type Deferred } from "../../base/async.ts";
import type { PositionEncoding } from "./positions.ts";

/** Maximum number of dynamic registrations; more are ignored. */
const registrationLimit = 1_000;

/** The capability that announces each method. */
const providers: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "textDocument/diagnostic": "diagnosticProvider",
    "textDocument/definition": "definitionProvider",
    "textDocument/implementation": "implementationProvider",
    "textDocument/references": "referencesProvider",
    "textDocument/hover": "hoverProvider",
    "textDocument/documentSymbol": "documentSymbolProvider",
    "workspace/symbol": "workspaceSymbolProvider",
    "textDocument/prepareCallHierarchy": "callHierarchyProvider",
    "textDocument/rename": "renameProvider",
  }),
);

/** The methods that a server supports, announced at its start or registered later. */
export class ServerCapabilities {
  #initial: Readonly<Record<string, unknown>> = {};
  /** Methods by registration id. */
  readonly #registered = new Map<string, { method: string; options: unknown }>();

  #change: Deferred<void> = deferred();

  /** Resolves with the next registration. */
  get changed(): Promise<void> {
    return this.#change.promise;
  }

  setInitial(capabilities: Readonly<Record<string, unknown>>): void {
    this.#initial = capabilities;
  }

  /** The unit of columns in positions. */
  get encoding(): PositionEncoding {
    return encodingSchema.parse(this.#initial["positionEncoding"]);
  }

  supports(method: string): boolean {
    if (method === "textDocument/prepareRename") return this.#options("textDocument/rename").some(canPrepare);
    return this.#options(method).length > 0;
  }

  register(params: unknown): void {
    for (const { id, method, registerOptions } of registrationSchema.parse(params).registrations) {
      if (this.#registered.size >= registrationLimit) return;
      this.#registered.set(id, { method, options: registerOptions ?? true });
    }
    const change = this.#change;
    this.#change = deferred();
    change.resolve();
  }

  unregister(params: unknown): void {
    const { unregisterations, unregistrations = unregisterations ?? [] } = unregistrationSchema.parse(params);
    for (const { id } of unregistrations) this.#registered.delete(id);
  }

  /** Options under which the method is supported; empty if it is not. */
  #options(method: string): unknown[] {
    const announced = this.#initial[providers.get(method) ?? ""];
    const isAnnounced = announced !== undefined && announced !== null && announced !== false;
    const registered = [...this.#registered.values()].filter((one) => one.method === method);
    return [...(isAnnounced ? [announced] : []), ...registered.map(({ options }) => options)];
  }
}

function canPrepare(options: unknown): boolean {
  return z.looseObject({ prepareProvider: z.literal(true) }).safeParse(options).success;
}

const encodingSchema = z.enum(["utf-8", "utf-16", "utf-32"]).catch("utf-16");
const registrationSchema = z.looseObject({
  registrations: z.array(
    z.looseObject({ id: z.string(), method: z.string(), registerOptions: z.unknown().optional() }),
  ),
});
const registrationIdsSchema = z.array(z.looseObject({ id: z.string() }));
const unregistrationSchema = z.looseObject({
  // The protocol's own spelling.
  unregisterations: registrationIdsSchema.optional(),
  unregistrations: registrationIdsSchema.optional(),
});
