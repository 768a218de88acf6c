import { describe, expect, test } from "vitest";
import { resolveWindowsCommand } from "../../../src/workspace/process/windows-command.ts";

const env = {
  Path: String.raw`C:\Windows;"C:\Program Files\nodejs";relative;D:\tools`,
  PATHEXT: ".COM;.EXE;.BAT;.CMD",
  comspec: String.raw`C:\Windows\system32\cmd.exe`,
};
const cmd = env.comspec;

const on = (...files: string[]) => ({
  env,
  cwd: String.raw`C:\work`,
  isFile: (path: string) => files.some((file) => file.toLowerCase() === path.toLowerCase()),
});

describe("a command on Windows", () => {
  test("that is a program is started directly", () => {
    const node = String.raw`C:\Program Files\nodejs\node.exe`;
    expect(resolveWindowsCommand("node", ["a b"], on(node))).toEqual({
      command: node,
      args: ["a b"],
      verbatim: false,
    });
  });

  test("that is a script is run by cmd, with each argument unchanged", () => {
    const npx = String.raw`C:\Program Files\nodejs\npx.cmd`;
    const args = ["-y", "some server", 'say "hi" & del *', String.raw`C:\dir\ `.trim(), "100%"];
    expect(resolveWindowsCommand("npx", args, on(npx))).toEqual({
      command: cmd,
      args: [
        "/d",
        "/s",
        "/c",
        '"C:\\Program^ Files\\nodejs\\npx.cmd ^^^"-y^^^" ^^^"some^^^ server^^^" ' +
          '^^^"say^^^ \\^^^"hi\\^^^"^^^ ^^^&^^^ del^^^ ^^^*^^^" ^^^"C:\\dir\\\\^^^" ^^^"100^^^%^^^""',
      ],
      verbatim: true,
    });
  });

  test.each([
    [
      "in the order of PATHEXT",
      "tool",
      [String.raw`D:\tools\tool.exe`, String.raw`D:\tools\tool.cmd`],
      "exe",
    ],
    ["in the order of PATH", "tool", [String.raw`C:\Windows\tool.com`, String.raw`D:\tools\tool.exe`], "com"],
    ["by its whole name", "tool.exe", [String.raw`D:\tools\tool.exe`], "exe"],
    ["by its path", String.raw`bin\tool`, [String.raw`C:\work\bin\tool.exe`], "exe"],
  ])("is found %s", (_, command, files, ending) => {
    const found = resolveWindowsCommand(command, [], on(...files));
    expect(found?.command).toBe(files[0]);
    expect(found?.command.endsWith(ending)).toBe(true);
  });

  test("of the working directory is not found by its name alone", () => {
    expect(resolveWindowsCommand("npx", [], on(String.raw`C:\work\npx.cmd`))).toBeUndefined();
    expect(resolveWindowsCommand("npx", [], on(String.raw`C:\work\npx.exe`))).toBeUndefined();
  });

  test("whose path does not exist is reported by Windows", () => {
    const nothing = String.raw`C:\work\nothing`;
    expect(resolveWindowsCommand(nothing, ["x"], on())).toEqual({
      command: nothing,
      args: ["x"],
      verbatim: false,
    });
  });
});
