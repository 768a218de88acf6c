import { constants } from "node:os";

/** File errors that Node reports without a name, with their meaning. */
const meanings: Readonly<Record<string, string>> = {
  EDQUOT: "disk quota exceeded",
  ESTALE: "the file is gone from its server",
  EBADMSG: "the disk returned damaged data",
  ENOLCK: "no locks available",
  ENOLINK: "the link to its server is broken",
  EUCLEAN: "the file system is damaged",
  ENOMEDIUM: "no disk in the drive",
  ENOKEY: "the encrypted folder is locked",
  EKEYEXPIRED: "the key of the encrypted folder has expired",
};

/** Linux error numbers that Node's constants lack. */
const linuxNumbers: Readonly<Record<string, number>> = {
  EUCLEAN: 117,
  ENOMEDIUM: 123,
  ENOKEY: 126,
  EKEYEXPIRED: 127,
};

/** Returns code and message of a system error that Node has no name for ("UNKNOWN", "Unknown system error -122"). */
export function unnamedError(thrown: object): { code: string; message: string } | undefined {
  if (!("errno" in thrown) || typeof thrown.errno !== "number") return undefined;
  if ("code" in thrown && typeof thrown.code === "string" && /^E[A-Z0-9]+$/.test(thrown.code))
    return undefined;
  const number = Math.abs(thrown.errno);
  const numbers = process.platform === "linux" ? linuxNumbers : {};
  const known: Record<string, number> = { ...constants.errno, ...numbers };
  const code = Object.keys(meanings).find((name) => known[name] === number);
  if (code === undefined) return undefined;
  const syscall = "syscall" in thrown && typeof thrown.syscall === "string" ? `, ${thrown.syscall}` : "";
  const path = "path" in thrown && typeof thrown.path === "string" ? ` '${thrown.path}'` : "";
  return { code, message: `${code}: ${meanings[code]}${syscall}${path}` };
}
