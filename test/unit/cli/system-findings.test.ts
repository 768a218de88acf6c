import { expect, test } from "vitest";
import { findSystem, systemFinding } from "../../../src/cli/doctor/system-findings.ts";

const linux = { platform: "linux", arch: "x64", glibc: "2.36", bash: "/bin/bash" } as const;
const windows = { platform: "win32", arch: "x64", glibc: undefined, bash: "C:\\Git\\bash.exe" } as const;

test("Linux with glibc and macOS need no advice", () => {
  expect(systemFinding(linux)).toEqual({ what: "System", found: "linux x64, glibc 2.36" });
  const mac = { ...linux, platform: "darwin", arch: "arm64", glibc: undefined } as const;
  expect(systemFinding(mac)).toEqual({ what: "System", found: "darwin arm64" });
});

test("musl locks by files", () => {
  expect(systemFinding({ ...linux, glibc: undefined })).toMatchObject({
    found: "linux x64, musl",
    note: expect.stringContaining("Locks between processes are files"),
  });
});

test("Windows has no watchdog, and needs a POSIX shell", () => {
  expect(systemFinding(windows)).toMatchObject({ note: expect.stringContaining("no watchdog") });
  expect(systemFinding({ ...windows, bash: undefined })).toMatchObject({
    found: "win32 x64, shell cmd.exe",
    todo: expect.stringContaining("Install Git for Windows"),
  });
});

test("names this system", async () => {
  const { platform, arch } = process;
  expect(await findSystem({ PATH: "/nowhere" })).toMatchObject({ platform, arch, bash: undefined });
});
