import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rgPath } from "@vscode/ripgrep";
import { assertProgramIsFor, readProgramSystem } from "../../../scripts/release/program-system.ts";
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
    expect(() => assertProgramIsFor(system, program)).not.toThrow();
    expect(() => assertProgramIsFor("plan9-x64", program)).toThrow(
      `is a program for ${system}, not for plan9-x64`,
    );
  }
});
