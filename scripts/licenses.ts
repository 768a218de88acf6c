import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "rolldown";
import { z } from "zod";
import { toSlashes } from "../src/base/files/paths.ts";

const packageSchema = z.object({ name: z.string(), version: z.string(), license: z.string().optional() });

/** Collects the packages whose code is in the bundle, for the file with their licenses. */
export class Licenses {
  readonly #folders = new Set<string>();

  readonly plugin: Plugin = {
    name: "licenses",
    generateBundle: (_, bundle) => {
      for (const part of Object.values(bundle))
        if (part.type === "chunk") for (const id of part.moduleIds) this.#addFolderOf(id);
    },
  };

  add(folder: string): void {
    this.#folders.add(folder);
  }

  /** Writes each license once, after the packages that have it. Throws if a package has none. */
  write(path: string): void {
    const packages = new Map<string, string[]>();
    for (const folder of [...this.#folders].sort()) {
      const { name, version, license } = packageSchema.parse(
        JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
      );
      const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
      const text = file === undefined ? license : readFileSync(join(folder, file), "utf8").trim();
      if (text === undefined) throw new Error(`${name} has no license, so the program must not contain it.`);
      packages.set(text, [...(packages.get(text) ?? []), `${name} ${version} (${license ?? "see below"})`]);
    }
    const parts = [...packages].map(([text, names]) => `${names.join("\n")}\n\n${text}\n`);
    const intro = "Fairlead contains code of these packages, under these licenses.\n";
    writeFileSync(path, [intro, ...parts].join(`\n${"-".repeat(80)}\n\n`));
  }

  #addFolderOf(id: string): void {
    const [, folder] = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(toSlashes(id)) ?? [];
    if (folder !== undefined) this.add(folder);
  }
}
