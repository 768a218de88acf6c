import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, relative, resolve } from "node:path";
import { codeOf } from "../base/errors.ts";
import { readRegularFile } from "../base/files/regular-file.ts";
import type { Env } from "./paths.ts";
import { isSecretFile } from "../permission/secret-file.ts";

export interface SubstitutionContext {
  readonly env: Env;
  readonly home: string;
  /** File that contains the value; relative `{file:…}` paths start at its folder. */
  readonly path: string;
  /** If set, only files inside this folder may be read and no variables are substituted. */
  readonly within?: string;
}

export interface SubstitutionResult {
  readonly value: unknown;
  /** References that could not be resolved; their values are empty. Contains no variable or file content. */
  readonly failures: readonly { path: (string | number)[]; message: string }[];
  /** Paths of values that were dropped because this file may not read the referenced source. */
  readonly refused: readonly (string | number)[][];
}

const fileLimitBytes = 1_000_000;

const variable = /\{env:([^{}]*)\}/g;
const file = /\{file:([^{}]*)\}/g;

/** Replaces `{env:NAME}`, `{env:NAME:-default}` and `{file:path}` in all strings of a value. */
export async function substitute(value: unknown, context: SubstitutionContext): Promise<SubstitutionResult> {
  const failures: { path: (string | number)[]; message: string }[] = [];
  const refused: (string | number)[][] = [];

  const walk = async (value: unknown, path: (string | number)[]): Promise<unknown> => {
    if (typeof value === "string") return fill(value, path);
    if (Array.isArray(value)) {
      return omitUndefinedItems(await Promise.all(value.map((item, index) => walk(item, [...path, index]))));
    }
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).map(async ([key, item]) => [key, await walk(item, [...path, key])]);
    const filled: [string, unknown][] = (await Promise.all(entries)).map(([key, item]) => [
      String(key),
      item,
    ]);
    return Object.fromEntries(filled.filter(([, item]) => item !== undefined));
  };

  /** Variables first, because a file name may contain them. File contents are not substituted again. */
  const fill = async (text: string, path: (string | number)[]): Promise<string | undefined> => {
    const named = await fillAll(text, variable, (name) => fromEnvironment(name, context), path);
    return named && fillAll(named, file, (name) => fromFile(name, context), path);
  };

  const fillAll = async (
    text: string,
    reference: RegExp,
    find: (name: string) => Resolved | Promise<Resolved>,
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

type Resolved =
  | { outcome: "found"; text: string }
  | { outcome: "missing"; message: string }
  | { outcome: "refused" };

/** `written` is the name of a variable, or `NAME:-default`. */
function fromEnvironment(written: string, { env, within }: SubstitutionContext): Resolved {
  if (within !== undefined) return { outcome: "refused" };
  const [name = "", ...rest] = written.split(":-");
  const text = env[name] ?? (rest.length === 0 ? undefined : rest.join(":-"));
  if (text === undefined) {
    return { outcome: "missing", message: `the environment variable ${name} is not set; the value is empty` };
  }
  return { outcome: "found", text };
}

async function fromFile(name: string, { home, path, within }: SubstitutionContext): Promise<Resolved> {
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
    const reason = codeOf(thrown) === "ENOENT" ? "file not found:" : "cannot read";
    return { outcome: "missing", message: `${reason} ${file}; the value is empty` };
  }
}

/** Rejects pipes and devices, which would block the read. */
async function statFile(path: string): Promise<{ size: number }> {
  const found = await stat(path);
  if (!found.isFile()) throw new Error(`${path} is not a file`);
  return found;
}

/**
 * Whether a file may be read without trust. Compares real paths, because a link may lead out; secret files
 * are excluded.
 */
async function mayRead(file: string, folder: string): Promise<boolean> {
  const real = await realpath(file);
  const relativePath = relative(await realpath(folder), real);
  return (
    relativePath !== "" && !relativePath.startsWith("..") && !isAbsolute(relativePath) && !isSecretFile(real)
  );
}

const omitUndefinedItems = (items: unknown[]): unknown[] => items.filter((item) => item !== undefined);
