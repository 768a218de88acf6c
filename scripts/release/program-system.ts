import { closeSync, openSync, readSync } from "node:fs";

/** Enough for the header of a program, also behind the DOS stub of Windows programs. */
const headerBytes = 4096;

const elfMachines: Readonly<Record<number, string>> = { 62: "linux-x64", 183: "linux-arm64" };
const machCpus: Readonly<Record<number, string>> = { 0x1000007: "darwin-x64", 0x100000c: "darwin-arm64" };
const peMachines: Readonly<Record<number, string>> = { 0x8664: "win32-x64", 0xaa64: "win32-arm64" };

/** Returns the platform and architecture that a program is built for, from its header; undefined if it is unknown. */
export function readProgramSystem(path: string): string | undefined {
  const header = readHeader(path);
  if (isElf(header)) return elfMachines[header.readUInt16LE(18)];
  if (header.readUInt32LE(0) === 0xfeedfacf) return machCpus[header.readUInt32LE(4)];
  const peStart = header.readUInt32LE(0x3c);
  const isPe = header.toString("latin1", 0, 2) === "MZ" && peStart < headerBytes - 6;
  return isPe ? peMachines[header.readUInt16LE(peStart + 4)] : undefined;
}

/** Returns the C library that a Linux program is linked to; undefined if it is linked to none, as static ones. */
export function readLibc(path: string): "glibc" | "musl" | undefined {
  const header = readHeader(path);
  if (!isElf(header)) return undefined;
  // The path of the loader follows the headers of the segments.
  const loader = /\/ld-(linux|musl)[-.\w]*\.so\.\d/.exec(header.toString("latin1"))?.[1];
  if (loader === undefined) return undefined;
  return loader === "linux" ? "glibc" : "musl";
}

/** Throws if a program is for another system than `platform-arch`, or on Linux for another C library. */
export function assertProgramIsFor(system: string, path: string, libc: "glibc" | "musl" = "glibc"): void {
  const found = readProgramSystem(path);
  if (found !== system)
    throw new Error(`${path} is a program for ${found ?? "an unknown system"}, not for ${system}.`);
  const linked = readLibc(path) ?? libc;
  if (linked !== libc) throw new Error(`${path} is a program for ${linked}, not for ${libc}.`);
}

function readHeader(path: string): Buffer {
  const header = Buffer.alloc(headerBytes);
  const file = openSync(path, "r");
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  return header;
}

const isElf = (header: Buffer): boolean => header.readUInt32BE(0) === 0x7f454c46;
