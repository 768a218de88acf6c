import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { lacksPipesAndDevices } from "../../support/platform/platform.ts";

/** Damages a stored file. `other` is an intact file of the same kind that belongs to something else. */
export type Damage = (path: string, other: string) => void;

const rewrite =
  (change: (text: string) => string | Buffer): Damage =>
  (path) =>
    writeFileSync(path, change(readFileSync(path, "utf8")));

const instead =
  (make: (path: string) => void): Damage =>
  (path) => {
    rmSync(path);
    make(path);
  };

/** Damages to a file: by a torn write, a bad disk, another program, a later version or a user. */
export const damages: Record<string, Damage> = {
  "is empty": rewrite(() => ""),
  "was cut off in the middle": rewrite((text) => text.slice(0, text.length / 2)),
  "is full of NULs": rewrite((text) => "\0".repeat(text.length)),
  "ends in NULs": rewrite((text) => text + "\0".repeat(512)),
  "is no JSON": rewrite(() => "<html>Bad gateway</html>"),
  "holds null": rewrite(() => "null"),
  "holds something else": rewrite(() => '{"name":"something else"}'),
  "has its fields in wrong types": rewrite((text) =>
    text.replaceAll(/"(id|time|status|value)":/g, '"$1":[1],"x":'),
  ),
  "is UTF-16": rewrite((text) => Buffer.from(text, "utf16le")),
  "is Latin-1": rewrite((text) => Buffer.from(text.replace('"', '"\u00e9'), "latin1")),
  "has its keys twice": rewrite((text) => text.replaceAll("{", '{"id":"first","id":"second",')),
  "is nested too deeply": rewrite(() => "[".repeat(200_000)),
  "comes from a later version": rewrite((text) => text.replace("{", '{"future":{"version":99},')),
  "begins with a byte order mark": rewrite((text) => `\ufeff${text}`),
  "is larger than anything": (path) => truncateSync(path, 200 * 1024 * 1024),
  "has the content of another": (path, other) => writeFileSync(path, readFileSync(other)),
  "is a folder": instead((path) => mkdirSync(join(path, "inside"), { recursive: true })),
  "is a link to another": (path, other) => instead(() => symlinkSync(other, path))(path, other),
  "is a link to nowhere": instead((path) => symlinkSync(join(dirname(path), "nowhere"), path)),
  ...(!lacksPipesAndDevices && { "is a pipe": instead((path) => void execFileSync("mkfifo", [path])) }),
};
