import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, relative, resolve } from "node:path";
import { codeOf } from "../base/errors.ts";
import { readRegularFile } from "../base/files/regular-file.ts";
import type { Env } from "./paths.ts";
import { isSecretFile } from "../permission/secret-file.ts";

export interface SubstitutionContext {
  readonly env: Env;
  readonly home: string;
  /** The file in which the value stands; `{file:…}` is relative to its folder. */
  readonly path: string;
  /** Where set, only files inside this folder may be read, and no variable. */
  readonly within?: string;
}

export interface Substituted {
  readonly value: unknown;
  /** What could not be filled in and is now empty. Never holds a variable's or file's content. */
  readonly failures: readonly { path: (string | number)[]; message: string }[];
  /** Values left out because this file may not read what they name. */
  readonly refused: readonly (string | number)[][];
}

/** Longest file that `{file:path}` reads, in bytes. */
const fileLimitBytes = 1_000_000;

const variable = /\{env:([^{}]*)\}/g;
const file = /\{file:([^{}]*)\}/g;

/** Fills `{env:NAME}` and `{file:path}` into the strings of a value. */
export async function substitute(value: unknown, context: SubstitutionContext): Promise<Substituted> {
  const failures: { path: (string | number)[]; message: string }[] = [];
  const refused: (string | number)[][] = [];

  const walk = async (value: unknown, path: (string | number)[]): Promise<unknown> => {
    if (typeof value === "string") return fill(value, path);
    if (Array.isArray(value)) {
      return present(await Promise.all(value.map((item, index) => walk(item, [...path, index]))));
    }
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).map(async ([key, item]) => [key, await walk(item, [...path, key])]);
    const filled: [string, unknown][] = (await Promise.all(entries)).map(([key, item]) => [
      String(key),
      item,
    ]);
    return Object.fromEntries(filled.filter(([, item]) => item !== undefined));
  };

  /** Variables first: a file's name may be made of them. What stands in a file is not looked at again. */
  const fill = async (text: string, path: (string | number)[]): Promise<string | undefined> => {
    const named = await fillAll(text, variable, (name) => fromEnvironment(name, context), path);
    return named && fillAll(named, file, (name) => fromFile(name, context), path);
  };

  const fillAll = async (
    text: string,
    reference: RegExp,
    find: (name: string) => Found | Promise<Found>,
    path: (string | number)[],
  ): Promise<string | undefined> => {
    let result = "";
    let end = 0;
    for (const match of text.matchAll(reference)) {
      const found = await find((match[1] ?? "").trim());
      if (found.outcome === "refused") {
        refused.push(path);
        return undefined;
      }
      if (found.outcome === "missing") failures.push({ path, message: found.message });
      result += text.slice(end, match.index) + (found.outcome === "found" ? found.text : "");
      end = match.index + match[0].length;
    }
    return result + text.slice(end);
  };

  return { value: await walk(value, []), failures, refused };
}

type Found =
  | { outcome: "found"; text: string }
  | { outcome: "missing"; message: string }
  | { outcome: "refused" };

function fromEnvironment(name: string, { env, within }: SubstitutionContext): Found {
  if (within !== undefined) return { outcome: "refused" };
  const text = env[name];
  if (text === undefined) {
    return { outcome: "missing", message: `the environment variable ${name} is not set; the value is empty` };
  }
  return { outcome: "found", text };
}

async function fromFile(name: string, { home, path, within }: SubstitutionContext): Promise<Found> {
  const file = name.startsWith("~/") ? resolve(home, name.slice(2)) : resolve(dirname(path), name);
  try {
    if (within !== undefined && !(await mayRead(file, within))) return { outcome: "refused" };
    const { size } = await statFile(file);
    if (size > fileLimitBytes) {
      return {
        outcome: "missing",
        message: `${file} is larger than ${fileLimitBytes} bytes; the value is empty`,
      };
    }
    return { outcome: "found", text: (await readRegularFile(file)).toString("utf8").trim() };
  } catch (thrown) {
    const reason = codeOf(thrown) === "ENOENT" ? "there is no file" : "cannot read";
    return { outcome: "missing", message: `${reason} ${file}; the value is empty` };
  }
}

/** A pipe would wait for its writer, a device never end. */
async function statFile(path: string): Promise<{ size: number }> {
  const found = await stat(path);
  if (!found.isFile()) throw new Error(`${path} is not a file`);
  return found;
}

/** Judged on real paths: a link that leads out is out. What is asked for before it is read is not filled in either. */
async function mayRead(file: string, folder: string): Promise<boolean> {
  const real = await realpath(file);
  const way = relative(await realpath(folder), real);
  return way !== "" && !way.startsWith("..") && !isAbsolute(way) && !isSecretFile(real);
}

const present = (items: unknown[]): unknown[] => items.filter((item) => item !== undefined);
