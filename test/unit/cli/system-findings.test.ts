import { expect, test } from "vitest";
import { findSystem, systemFindings } from "../../../src/cli/doctor/system-findings.ts";

const programs = { bash: "/bin/bash", git: "/usr/bin/git", hasNativePart: true } as const;
const linux = { platform: "linux", arch: "x64", glibc: "2.36", ...programs } as const;
const musl = { ...linux, glibc: undefined } as const;
const windows = { ...musl, platform: "win32", bash: "C:\\Git\\bash.exe" } as const;

test("Linux needs no advice, with glibc or musl", () => {
  expect(systemFindings(linux)).toEqual([{ what: "System", found: "linux x64, glibc 2.36" }]);
  expect(systemFindings(musl)).toEqual([{ what: "System", found: "linux x64, musl" }]);
});

test("a system for which the native part does not load locks by files", () => {
  for (const system of [linux, musl])
    expect(systemFindings({ ...system, hasNativePart: false })).toMatchObject([
      { note: expect.stringMatching(/Locks between processes are files.*second link/) },
    ]);
});

test("a system without bash and git names what is missing and why it matters", () => {
  const bare = { bash: undefined, git: undefined };
  expect(systemFindings({ ...musl, ...bare })).toMatchObject([
    { found: "linux x64, musl, shell /bin/sh", note: expect.stringMatching(/bash is not installed/) },
    { what: "Git", found: "not installed", note: expect.stringMatching(/worktrees.*Install git/) },
  ]);
});

test("macOS cannot find what left the process group of a command", () => {
  const mac = { ...musl, platform: "darwin", arch: "arm64" } as const;
  expect(systemFindings(mac)).toEqual([
    { what: "System", found: "darwin arm64", note: expect.stringContaining("process group") },
  ]);
});

test("Windows has no watchdog, and needs a POSIX shell", () => {
  expect(systemFindings(windows)).toMatchObject([
    { note: expect.stringMatching(/no watchdog.*cannot be joined/) },
  ]);
  expect(systemFindings({ ...windows, bash: undefined })).toMatchObject([
    { found: "win32 x64, shell cmd.exe", todo: expect.stringContaining("Install Git for Windows") },
  ]);
});

test("names this system, for which the native part is built", async () => {
  const { platform, arch } = process;
  expect(await findSystem({ PATH: "/nowhere" })).toMatchObject({
    platform,
    arch,
    bash: undefined,
    git: undefined,
    hasNativePart: true,
  });
});
