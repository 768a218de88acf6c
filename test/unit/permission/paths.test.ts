import { execFile } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { toSlashes } from "../../../src/base/files/paths.ts";
import { isOwnConfiguration } from "../../../src/permission/own-configuration.ts";
import { missingPathMessage, pathPermissions, resolveToolPath } from "../../../src/tool/paths.ts";
import {
  findForbiddenName,
  formatPath,
  hasLongName,
  isInside,
  namesStream,
  resolvePath,
} from "../../../src/workspace/paths.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { toolPlace } from "../../tool/tool-place.ts";
import { lacksOddNames, lacksPipesAndDevices } from "../../support/platform/platform.ts";

test("absolute, relative and home paths lead to the same file", async () => {
  await using folder = await temporaryFolder({ "a/b.txt": "" });
  const base = { cwd: join(folder.path, "a"), home: folder.path };
  const path = join(folder.path, "a/b.txt");
  for (const raw of ["b.txt", "./b.txt", "../a/b.txt", path, "~/a/b.txt"]) {
    expect(await resolvePath(raw, base)).toEqual({
      path,
      unresolved: path,
      exists: true,
      kind: "file",
      size: 0,
    });
  }
});

test("a missing path resolves to the real path of its existing part and the rest", async () => {
  await using folder = await temporaryFolder({ "real/x.txt": "" });
  await symlink(join(folder.path, "real"), join(folder.path, "link"));
  expect(await resolvePath("link/new/y.txt", { cwd: folder.path, home: "/" })).toEqual({
    path: join(folder.path, "real/new/y.txt"),
    unresolved: join(folder.path, "link/new/y.txt"),
    exists: false,
    kind: "missing",
    size: 0,
  });
});

test("a link to a missing file leads to the place where the file would be created", async () => {
  await using folder = await temporaryFolder({ "in/x": "", "out/x": "" });
  await symlink("../out/new.txt", join(folder.path, "in/link"));
  const { path, kind } = await resolvePath("in/link", { cwd: folder.path, home: "/" });
  expect({ path, kind }).toEqual({ path: join(folder.path, "out/new.txt"), kind: "missing" });
});

test("link cycles, NULs, empty and endless names are rejected with an explanation", async () => {
  await using folder = await temporaryFolder();
  const base = { cwd: folder.path, home: "/" };
  await symlink("two", join(folder.path, "one"));
  await symlink("one", join(folder.path, "two"));
  await expect(resolvePath("one", base)).rejects.toThrow("one: there is a link cycle on the way.");
  await expect(resolvePath("a\0b", base)).rejects.toThrow("The path contains a NUL character");
  await expect(resolvePath("p/".repeat(5_000), base)).rejects.toThrow(
    "The path has 10000 characters, more than any system allows.",
  );
  await expect(resolvePath("", base)).rejects.toThrow("The path is empty");
  await expect(resolvePath("x".repeat(5000), base)).rejects.toThrow("too long for the file system");
});

test("a path below a file is missing", async () => {
  await using folder = await temporaryFolder({ "a.txt": "" });
  expect((await resolvePath("a.txt/b", { cwd: folder.path, home: "/" })).kind).toBe("missing");
});

test.skipIf(lacksPipesAndDevices)("devices, pipes and files of the kernel are special", async () => {
  await using folder = await temporaryFolder();
  await promisify(execFile)("mkfifo", [join(folder.path, "pipe")]);
  await symlink("/dev/zero", join(folder.path, "zero"));
  for (const raw of ["pipe", "zero", "/dev/null", "/proc/self/environ", "/sys", "/proc/self/no-such"]) {
    expect((await resolvePath(raw, { cwd: folder.path, home: "/" })).kind, raw).toBe("special");
  }
});

test.each([
  ["C:\\work\\.env::$DATA", true],
  ["C:\\work\\notes:3", true],
  ["\\\\?\\C:\\work\\a:b", true],
  ["C:\\work\\.env", false],
  ["\\\\server\\share\\a", false],
])("on Windows %s names a stream: %s", (path, expected) => {
  expect(namesStream(path, "win32")).toBe(expected);
  expect(namesStream(path, "linux")).toBe(false);
});

test.each([
  ["C:\\work\\a.txt:notes", "names a stream of a file: Windows allows no colon in names."],
  ["C:\\work\\why?\\a.txt", 'Windows allows no "?" in names.'],
  ["C:\\work\\a\tb", 'Windows allows no "\\t" in names.'],
  ["\\\\?\\C:\\work\\<a>", 'Windows allows no "<" in names.'],
])("an edit of %j says what Windows forbids in it", (path, problem) => {
  expect(findForbiddenName(path, "win32")).toContain(problem);
  expect(findForbiddenName(path, "linux")).toBeUndefined();
});

test.each(["C:\\work\\a (1) & b.txt", "\\\\?\\C:\\work\\ä.txt"])("Windows allows the name %j", (path) => {
  expect(findForbiddenName(path, "win32")).toBeUndefined();
});

test("on Windows a name of 255 characters is not too long, one more is", () => {
  const path = (length: number) => `C:\\work\\${"n".repeat(length)}\\${"m".repeat(200)}\\a`;
  expect(hasLongName(path(255), "win32")).toBe(false);
  expect(hasLongName(path(256), "win32")).toBe(true);
  expect(hasLongName(path(256), "linux")).toBe(false);
});

test("paths are compared by whole components", () => {
  expect(isInside("/a/b", ["/a"])).toBe(true);
  expect(isInside("/a", ["/a"])).toBe(true);
  expect(isInside("/a/..b/c", ["/a"])).toBe(true);
  expect(isInside("/ab", ["/a"])).toBe(false);
  expect(isInside("/", ["/a"])).toBe(false);
  expect(isInside("/x", ["/a", "/"])).toBe(true);
  expect(isInside("/x", [])).toBe(false);
});

test("paths inside are written relative", () => {
  expect(["/w/src/a.ts", "/w", "/wide", "/"].map((path) => formatPath("/w", path))).toEqual([
    "src/a.ts",
    ".",
    "/wide",
    "/",
  ]);
});

test("a path inside asks only for itself, and offers only itself", async () => {
  await using place = await toolPlace({ "src/a.ts": "" });
  const resolved = await resolveToolPath(place.context, "src/a.ts");
  expect(pathPermissions(place.context, resolved, "edit")).toEqual([
    {
      permission: "edit",
      subjects: [{ text: "src/a.ts", also: [toSlashes(place.path("src/a.ts"))] }],
      always: ["src/a.ts"],
    },
  ]);
});

test("a new file in a linked folder whose target is outside is outside", async () => {
  await using place = await toolPlace();
  const target = join(place.outside, "target");
  await mkdir(target);
  await symlink(target, place.path("link"));
  const resolved = await resolveToolPath(place.context, "link/new.txt");
  const linked = toSlashes(place.path("link/new.txt"));
  const also = [linked, "link/new.txt"];
  const path = toSlashes(join(target, "new.txt"));
  const outside = toSlashes(target);
  expect(pathPermissions(place.context, resolved, "edit")).toEqual([
    { permission: "edit", subjects: [{ text: path, also, named: "link/new.txt" }], always: [path] },
    {
      permission: "external_directory",
      subjects: [{ text: outside, also: [path, linked], named: linked }],
      always: [outside, `${outside}/*`],
    },
  ]);
});

test.skipIf(lacksOddNames)(
  "a name with wildcards and a folder that contains the home folder are not offered",
  async () => {
    await using place = await toolPlace({ "a*.ts": "" });
    const starred = pathPermissions(place.context, await resolveToolPath(place.context, "a*.ts"), "read");
    const above = pathPermissions(place.context, await resolveToolPath(place.context, place.outside), "read");
    expect([...starred, ...above.slice(1)].map(({ permission, always }) => ({ permission, always }))).toEqual(
      [
        { permission: "read", always: [] },
        { permission: "external_directory", always: [] },
      ],
    );
  },
);

test("an edit of the agent's own configuration asks each time, reading it does not", async () => {
  await using place = await toolPlace();
  const resolved = await resolveToolPath(place.context, ".fairlead/agents/x.md");
  const [edit] = pathPermissions(place.context, resolved, "edit");
  const [read] = pathPermissions(place.context, resolved, "read");
  expect(edit?.always).toEqual([]);
  expect(edit?.subjects[0]?.confirm).toBe("it changes the agent's own configuration or what git runs");
  expect(read?.subjects[0]?.confirm).toBeUndefined();
});

test.each([
  ["/w/.fairlead/agents/a.md", true],
  ["/w/.FairLead/x", true],
  ["/w/sub/.opencode/plugin/p.ts", true],
  ["/w/opencode.jsonc", true],
  ["/w/fairlead.json", true],
  ["/w/.git/hooks/pre-commit", true],
  ["/w/.git/config", true],
  ["/home/me/.config/fairlead/x.json", true],
  ["/w/.opencode/plans/plan.md", false],
  ["/w/.opencode/plans/plan.js", true],
  ["/w/AGENTS.md", false],
  ["/w/src/fairlead.ts", false],
  ["/w/.gitignore", false],
])("%s belongs to the agent's configuration: %s", (path, expected) => {
  expect(isOwnConfiguration(path)).toBe(expected);
});

test.skipIf(lacksPipesAndDevices)("devices are refused to tools", async () => {
  await using place = await toolPlace();
  await expect(resolveToolPath(place.context, "/dev/zero")).rejects.toThrow(
    "Give the path of a file or folder",
  );
  await expect(resolveToolPath(place.context, "a\0")).rejects.toThrow(
    expect.objectContaining({ name: "ToolFailure" }),
  );
});

test("a missing file suggests similar names, but none from outside the workspace", async () => {
  await using place = await toolPlace({ "src/Button.tsx": "", "src/other.css": "" });
  const inside = await resolveToolPath(place.context, "src/button.ts");
  expect(await missingPathMessage(place.context, inside, "src/button.ts")).toBe(
    "src/button.ts does not exist. Did you mean src/Button.tsx?",
  );
  const raw = join(place.outside, "worc");
  const outside = await resolveToolPath(place.context, raw);
  expect(await missingPathMessage(place.context, outside, raw)).toBe(
    `${raw} does not exist. Look for it with glob or list.`,
  );
});
