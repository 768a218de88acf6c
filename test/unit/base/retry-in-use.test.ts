import { expect, test, vi } from "vitest";
import { retryInUse } from "../../../src/base/files/retry-in-use.ts";

const failure = (code: string) => Object.assign(new Error(`${code}: rename`), { code });
const system = (platform: NodeJS.Platform) => ({ platform, sleep: vi.fn(async () => {}) });

test.each(["EPERM", "EACCES", "EBUSY"])(
  "on Windows a rename is repeated while it fails with %s",
  async (code) => {
    const rename = vi.fn().mockRejectedValueOnce(failure(code)).mockRejectedValueOnce(failure(code));
    await retryInUse(rename.mockResolvedValue("done"), system("win32"));
    expect(rename).toHaveBeenCalledTimes(3);
  },
);

test("on Windows a rename that always fails is given up with the system's error", async () => {
  const windows = system("win32");
  const rename = vi.fn().mockRejectedValue(failure("EPERM"));
  await expect(retryInUse(rename, windows)).rejects.toThrow("EPERM: rename");
  expect(rename).toHaveBeenCalledTimes(windows.sleep.mock.calls.length + 1);
});

test.each([
  ["win32", "ENOENT"],
  ["linux", "EPERM"],
] as const)("on %s, %s is thrown at once", async (platform, code) => {
  const rename = vi.fn().mockRejectedValue(failure(code));
  await expect(retryInUse(rename, system(platform))).rejects.toThrow(code);
  expect(rename).toHaveBeenCalledOnce();
});
