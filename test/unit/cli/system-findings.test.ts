import { expect, test } from "vitest";
import { findSystem, systemFinding } from "../../../src/cli/doctor/system-findings.ts";

const linux = { platform: "linux", arch: "x64", glibc: "2.36", bash: "/bin/bash" } as const;
const windows = { platform: "win32", arch: "x64", glibc: undefined, bash: "C:\\Git\\bash.exe" } as const;

test("Linux with glibc needs no advice", () => {
  expect(systemFinding(linux)).toEqual({ what: "System", found: "linux x64, glibc 2.36" });
});

test("macOS cannot find processes that left the process group of a command", () => {
  const mac = { ...linux, platform: "darwin", arch: "arm64", glibc: undefined } as const;
  expect(systemFinding(mac)).toEqual({
    what: "System",
    found: "darwin arm64",
    note: expect.stringContaining("process group"),
  });
});

test("musl locks with files", () => {
  expect(systemFinding({ ...linux, glibc: undefined })).toMatchObject({
    found: "linux x64, musl",
    note: expect.stringMatching(/Locks between processes are files.*second link/),
  });
});

test("Windows has no watchdog, and needs a POSIX shell", () => {
  expect(systemFinding(windows)).toMatchObject({
    note: expect.stringMatching(/no watchdog.*cannot be joined/),
  });
  expect(systemFinding({ ...windows, bash: undefined })).toMatchObject({
    found: "win32 x64, shell cmd.exe",
    todo: expect.stringContaining("Install Git for Windows"),
  });
});

test("names this system", async () => {
  const { platform, arch } = process;
  expect(await findSystem({ PATH: "/nowhere" })).toMatchObject({ platform, arch, bash: undefined });
});
