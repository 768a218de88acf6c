import { expect, test } from "vitest";
import { shellLine } from "../../../src/hook/run-hook.ts";
import { listProgramPaths } from "../../../src/workspace/process/find-program.ts";
import { listBashPaths } from "../../../src/workspace/process/find-shell.ts";

test("on Windows a command may be a program or a script, as npm installs it", () => {
  expect(listProgramPaths("pyright", { Path: "C:\\npm;tools;D:\\bin" }, "win32")).toEqual(
    ["C:\\npm", "D:\\bin"].flatMap((folder) =>
      [".exe", ".com", ".cmd", ".bat"].map((ending) => `${folder}\\pyright${ending}`),
    ),
  );
  expect(listProgramPaths("rg.exe", { PATH: "C:\\bin" }, "win32")).toEqual(["C:\\bin\\rg.exe"]);
  expect(listProgramPaths("rg", { PATH: "/a:b:/c" }, "linux")).toEqual(["/a/rg", "/c/rg"]);
});

test("on Windows bash is that of the PATH or of Git, and never that of WSL", () => {
  const env = {
    Path: "C:\\Windows\\System32;C:\\Users\\a\\AppData\\Local\\Microsoft\\WindowsApps;E:\\msys\\bin;D:\\Git\\cmd",
    ProgramFiles: "C:\\Program Files",
    LOCALAPPDATA: "C:\\Users\\a\\AppData\\Local",
  };
  expect(listBashPaths(env)).toEqual([
    "E:\\msys\\bin\\bash.exe",
    "D:\\Git\\cmd\\bash.exe",
    "D:\\Git\\bin\\bash.exe",
    "C:\\Program Files\\Git\\bin\\bash.exe",
    "C:\\Users\\a\\AppData\\Local\\Programs\\Git\\bin\\bash.exe",
  ]);
});

test("the quotes of a hook's command reach each shell unchanged", () => {
  const cmd = "C:\\Windows\\system32\\cmd.exe";
  expect(shellLine('lint "a b"', cmd)).toEqual({
    command: cmd,
    args: ["/d", "/s", "/c", '"lint "a b""'],
    verbatim: true,
  });
  const bash = "C:\\Program Files\\Git\\bin\\bash.exe";
  expect(shellLine('lint "a b"', bash)).toEqual({ command: bash, args: ["-c", 'lint "a b"'] });
});
