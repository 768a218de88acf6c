import { stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFolder, makeFolderSync } from "../../../src/base/files/make-folder.ts";
import { temporaryFolder } from "../../support/temp.ts";

test("creates a folder and its parents, also concurrently, and leaves an existing one", async () => {
  await using place = await temporaryFolder();
  const deep = join(place.path, "a/b/c");
  await Promise.all(Array.from({ length: 8 }, () => makeFolder(deep, 0o700)));
  if (process.platform !== "win32")
    for (const made of [join(place.path, "a"), deep]) expect((await stat(made)).mode & 0o777).toBe(0o700);
  await symlink(deep, join(place.path, "link"));
  await makeFolder(join(place.path, "link"));
  makeFolderSync(join(place.path, "link/d/e"));
  makeFolderSync(join(deep, "d/e"));
  expect((await stat(join(deep, "d/e"))).isDirectory()).toBe(true);
});

test("a folder that cannot be created fails at once with the system's reason", async () => {
  await using place = await temporaryFolder({ file: "" });
  const impossible = [
    join(place.path, "file"),
    join(place.path, "file/deeper/still"),
    ...(process.platform === "linux" ? ["/proc/nowhere", "/proc/nowhere/deeper"] : []),
  ];
  for (const path of impossible) {
    const code = expect.stringMatching(/^(EEXIST|ENOTDIR|ENOENT)$/);
    await expect(makeFolder(path)).rejects.toMatchObject({ code });
    expect(() => makeFolderSync(path)).toThrow(expect.objectContaining({ code }));
  }
});
