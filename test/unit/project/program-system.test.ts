import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rgPath } from "@vscode/ripgrep";
import { assertProgramIsFor, readLibc, readProgramSystem } from "../../../scripts/release/program-system.ts";
import { temporaryFolder } from "../../support/temp.ts";

const elf = (machine: number) => {
  const header = Buffer.alloc(64);
  header.writeUInt32BE(0x7f454c46);
  header.writeUInt16LE(machine, 18);
  return header;
};
const machO = (cpu: number) => {
  const header = Buffer.alloc(64);
  header.writeUInt32LE(0xfeedfacf);
  header.writeUInt32LE(cpu, 4);
  return header;
};
const pe = (machine: number) => {
  const header = Buffer.alloc(256);
  header.write("MZ");
  header.writeUInt32LE(128, 0x3c);
  header.write("PE", 128);
  header.writeUInt16LE(machine, 132);
  return header;
};

test.each([
  ["linux-x64", elf(62)],
  ["linux-arm64", elf(183)],
  ["darwin-x64", machO(0x1000007)],
  ["darwin-arm64", machO(0x100000c)],
  ["win32-x64", pe(0x8664)],
  [undefined, Buffer.from("#!/bin/sh\n")],
])("a program for %s is recognized", async (system, header) => {
  await using place = await temporaryFolder();
  const path = join(place.path, "program");
  await writeFile(path, header);
  expect(readProgramSystem(path)).toBe(system);
});

test("the archive of a system contains only its programs", () => {
  const system = `${process.platform}-${process.arch}`;
  for (const program of [process.execPath, rgPath]) {
    expect(() => assertProgramIsFor(system, program, readLibc(process.execPath))).not.toThrow();
    expect(() => assertProgramIsFor("plan9-x64", program)).toThrow(
      `is a program for ${system}, not for plan9-x64`,
    );
  }
});

test("a program for another C library is refused, unless it is linked to none", async () => {
  await using place = await temporaryFolder();
  const write = async (name: string, loader: string) => {
    const path = join(place.path, name);
    await writeFile(path, Buffer.concat([elf(62), Buffer.from(`\0${loader}\0`)]));
    return path;
  };
  const glibc = await write("glibc", "/lib64/ld-linux-x86-64.so.2");
  const musl = await write("musl", "/lib/ld-musl-x86_64.so.1");
  const none = await write("none", "");
  const judge = (path: string, libc?: "musl") => () => assertProgramIsFor("linux-x64", path, libc);
  for (const ok of [judge(glibc), judge(none), judge(musl, "musl"), judge(none, "musl")])
    expect(ok).not.toThrow();
  expect(judge(musl)).toThrow("is a program for musl, not for glibc");
  expect(judge(glibc, "musl")).toThrow("is a program for glibc, not for musl");
});
