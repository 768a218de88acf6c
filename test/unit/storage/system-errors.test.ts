import { expect, test } from "vitest";
import { codeOf, messageOf, importProblem, UserError } from "../../../src/base/errors.ts";
import { toStoreError } from "../../../src/storage/json/disk-error.ts";

/** A system error as Node reports it when it has no name for its number: synchronous calls, then promises. */
const unnamed = (errno: number) => [
  Object.assign(new Error("UNKNOWN: unknown error, write"), { errno, code: "UNKNOWN", syscall: "write" }),
  Object.assign(new Error(`Unknown system error ${errno}: Unknown system error ${errno}, write`), {
    errno,
    code: `Unknown system error ${errno}`,
    syscall: "write",
  }),
];

test.runIf(process.platform === "linux").each([
  ["EDQUOT", -122, "the disk quota is used up"],
  ["ESTALE", -116, "the folder is gone from its server"],
  ["EUCLEAN", -117, "the file system is damaged"],
  ["EBADMSG", -74, "the disk returned damaged data"],
  ["ENOKEY", -126, "the encrypted folder is locked"],
])("%s, which Node has no name for, is recognized by its number", (code, errno, words) => {
  for (const error of unnamed(errno)) {
    expect(codeOf(error)).toBe(code);
    expect(messageOf(error)).toMatch(new RegExp(`^${code}: .*, write$`));
    expect(messageOf(error)).not.toMatch(/unknown/i);
    const notice = toStoreError(error, "/data");
    expect(notice).toBeInstanceOf(UserError);
    expect(messageOf(notice)).toContain(`Sessions cannot be stored in /data: ${words} (${code}).`);
  }
});

test("does not report a module as missing for lack of file handles", () => {
  const path = "/program/dist/library-x.cjs";
  const error = Object.assign(new Error(`EMFILE: too many open files, open '${path}'`), {
    code: "EMFILE",
    path,
  });
  for (const notice of [messageOf(error), importProblem(error)]) {
    expect(notice).toMatch(
      /^A module of the program could not be loaded: too many files are open \(EMFILE\)\. Close/,
    );
    expect(notice).not.toMatch(/updated|removed|install/);
  }
  expect(messageOf(Object.assign(new Error("EMFILE: a.txt"), { code: "EMFILE", path: "a.txt" }))).toBe(
    "EMFILE: a.txt",
  );
});

test("an error that is named, or has an unknown number, is unchanged", () => {
  const named = Object.assign(new Error("ENOSPC: no space left on device, write"), {
    errno: -28,
    code: "ENOSPC",
  });
  expect([codeOf(named), messageOf(named)]).toEqual(["ENOSPC", "ENOSPC: no space left on device, write"]);
  const [other] = unnamed(-4_000);
  expect([codeOf(other), messageOf(other)]).toEqual(["UNKNOWN", "UNKNOWN: unknown error, write"]);
});
