import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";

/** Longer ones are none that a person could choose by, in characters. */
const longestName = 300;

const rateShape = {
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cacheRead: z.number().nonnegative().optional(),
  cacheWrite: z.number().nonnegative().optional(),
};

/** What is known of a model before anybody asks it. Limits are tokens, prices US dollars per million tokens; unknown is left out. */
export const knownModelSchema = z.strictObject({
  id: z.string().min(1).max(longestName),
  name: z.string().min(1).max(longestName),
  context: z.number().int().positive().optional(),
  input: z.number().int().positive().optional(),
  output: z.number().int().positive().optional(),
  cost: z
    .strictObject({
      ...rateShape,
      over: z.array(z.strictObject({ tokens: z.number().int().positive(), ...rateShape })).optional(),
    })
    .optional(),
  /** Media it takes beside text. */
  takes: z.array(z.enum(["image", "pdf", "audio"])).optional(),
  reasoning: z.boolean().optional(),
  /** False where the provider refuses one. */
  temperature: z.boolean().optional(),
  /** False where it takes no tools. */
  tools: z.boolean().optional(),
  /** Reasoning efforts, the least first. */
  variants: z.array(z.string()).optional(),
});
export type KnownModel = z.infer<typeof knownModelSchema>;

const figuresSchema = z.enum(["limits", "cost", "abilities"]);

/** The catalogue's file: each figure with the page it is from, all looked up on one day. */
export const catalogSchema = z.strictObject({
  date: z.iso.date(),
  note: z.string(),
  models: z.record(
    z.string(),
    z.array(
      knownModelSchema.extend({
        /** The page that each of its figures was read on. */
        sources: z.partialRecord(figuresSchema, z.url()),
        /** What no page of the provider itself could be found for: the source is somebody else's. */
        unconfirmed: z.array(figuresSchema).optional(),
      }),
    ),
  ),
});
export type CatalogFile = z.infer<typeof catalogSchema>;

/** Beside the bundled program, or at the root of its sources. */
function catalogPath(): string {
  const [bundled, source] = ["../catalog/models.json", "../../../catalog/models.json"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  return bundled !== undefined && existsSync(bundled) ? bundled : (source ?? "");
}

/** The models that the program comes with. Their file is read and parsed when one is first asked for. */
export class Catalog {
  readonly #log: Log;
  readonly #path: string;
  #file: CatalogFile | undefined;

  constructor(log: Log, path: string = catalogPath()) {
    this.#log = log;
    this.#path = path;
  }

  modelsOf(provider: string): readonly KnownModel[] {
    this.#file ??= this.#read();
    return Object.hasOwn(this.#file.models, provider) ? (this.#file.models[provider] ?? []) : [];
  }

  /** Without its catalogue the program still works with any model that is named. */
  #read(): CatalogFile {
    try {
      return catalogSchema.parse(JSON.parse(readFileSync(this.#path, "utf8")));
    } catch (error) {
      const reason = messageOf(error);
      this.#log.error("the catalogue of models cannot be read; install the program again", { reason });
      return { date: "", note: "", models: {} };
    }
  }
}
