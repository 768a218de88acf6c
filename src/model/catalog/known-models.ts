import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { apis } from "../../config/api.ts";

/** Maximum length of a model name, in characters. */
const nameLimit = 300;

const rateShape = {
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cacheRead: z.number().nonnegative().optional(),
  cacheWrite: z.number().nonnegative().optional(),
};

/** Static data of a model. Limits in tokens, prices in US dollars per million tokens; unknown values are omitted. */
export const knownModelSchema = z.strictObject({
  id: z.string().min(1).max(nameLimit),
  name: z.string().min(1).max(nameLimit),
  context: z.number().int().positive().optional(),
  input: z.number().int().positive().optional(),
  output: z.number().int().positive().optional(),
  cost: z
    .strictObject({
      ...rateShape,
      over: z.array(z.strictObject({ tokens: z.number().int().positive(), ...rateShape })).optional(),
    })
    .optional(),
  /** Media that it accepts in addition to text. */
  takes: z.array(z.enum(["image", "pdf", "audio"])).optional(),
  reasoning: z.boolean().optional(),
  /** Number of its parameters, as its server reports it. */
  parameters: z.number().positive().optional(),
  /** False if the provider rejects a temperature. */
  temperature: z.boolean().optional(),
  /** False if it does not support tools. */
  tools: z.boolean().optional(),
  /** Reasoning efforts, the least first. */
  variants: z.array(z.string()).optional(),
  /** The effort of a request that names none, as the vendor documents it. */
  defaultEffort: z.string().optional(),
  /** The API to call it with, if it differs from its provider's. */
  api: z.enum(apis).optional(),
});
export type KnownModel = z.infer<typeof knownModelSchema>;

const figuresSchema = z.enum(["limits", "cost", "abilities", "efforts", "api"]);

/** The catalog file. Each figure has a source page; all were looked up on the same day. */
export const catalogSchema = z.strictObject({
  date: z.iso.date(),
  note: z.string(),
  models: z.record(
    z.string(),
    z.array(
      knownModelSchema.extend({
        /** The source page of each figure. */
        sources: z.partialRecord(figuresSchema, z.url()),
        /** Figures whose source is not the provider's own page. */
        unconfirmed: z.array(figuresSchema).optional(),
      }),
    ),
  ),
});
export type CatalogFile = z.infer<typeof catalogSchema>;

/** Returns the path next to the bundled program, or at the root of the sources. */
function catalogPath(): string {
  const [bundled, source] = ["../catalog/models.json", "../../../catalog/models.json"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  return bundled !== undefined && existsSync(bundled) ? bundled : (source ?? "");
}

/** The built-in model data. The file is read on first use. */
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

  /** Reads the file. Returns an empty catalog on errors: named models still work without it. */
  #read(): CatalogFile {
    try {
      return catalogSchema.parse(JSON.parse(readFileSync(this.#path, "utf8")));
    } catch (error) {
      const reason = messageOf(error);
      this.#log.error("model catalog not readable; reinstall the program", { reason });
      return { date: "", note: "", models: {} };
    }
  }
}
