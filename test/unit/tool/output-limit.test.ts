import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cutText, takeHead, limitOutput } from "../../../src/tool/output-limit.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { shownMode } from "../../support/platform/platform.ts";

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join("");

test("an output that fits is unchanged and creates no file", async () => {
  await using folder = await temporaryFolder();
  const text = lines(2000);
  expect(await limitOutput(text, { folder: join(folder.path, "none") })).toEqual({ text, truncated: false });
  await expect(stat(join(folder.path, "none"))).rejects.toThrow("ENOENT");
});

test("one line or byte above the limit is truncated", async () => {
  await using folder = await temporaryFolder();
  const fits = "x".repeat(50 * 1024);
  expect(await limitOutput(fits, { folder: folder.path })).toEqual({ text: fits, truncated: false });
  for (const [text, missing] of [
    [lines(2001), "1 line, 11 bytes"],
    [`${fits}x`, "1 byte"],
  ] as const) {
    const limited = await limitOutput(text, { folder: folder.path });
    expect(limited.text).toContain(`[Cut: ${missing} are missing here.`);
  }
});

test("truncates too many lines, stores all in a private file, and says so", async () => {
  await using folder = await temporaryFolder();
  const result = await limitOutput(lines(20), { maxLines: 3, folder: folder.path, hint: "Search it." });
  const path = result.path ?? "";
  expect(result).toEqual({
    text: `line 1\nline 2\nline 3\n\n[Cut: 17 lines, 131 bytes are missing here. The whole is in ${path}. Search it.]`,
    truncated: true,
    path,
  });
  expect(path).toMatch(/[\\/]tool_[0-9a-f]{32}$/);
  expect(await readFile(path, "utf8")).toBe(lines(20));
  expect((await stat(path)).mode & 0o777).toBe(shownMode(0o600));
});

test("a command's output keeps its end", async () => {
  await using folder = await temporaryFolder();
  const result = await limitOutput(lines(20), {
    maxLines: 2,
    folder: folder.path,
    hint: "Search it.",
    keep: "tail",
  });
  const notice = `[Cut: 18 lines, 135 bytes are missing here. The whole is in ${result.path}. Search it.]`;
  expect(result.text).toBe(`${notice}\n\nline 19\nline 20\n`);
});

test("reports that the complete output cannot be stored, and returns the rest", async () => {
  await using folder = await temporaryFolder({ file: "" });
  const result = await limitOutput(lines(20), { maxLines: 1, folder: join(folder.path, "file") });
  expect(result.text).toMatch(
    /^line 1\n\n\[Cut: 19 lines, \d+ bytes are missing, and the whole could not be saved: E/,
  );
  expect(result.path).toBeUndefined();
});

test("truncates between characters", () => {
  expect(cutText("aé", 9, 2, "head")).toBe("a");
  expect(cutText("éa", 9, 2, "tail")).toBe("a");
  expect(cutText("a😀b", 9, 4, "head")).toBe("a");
  expect(cutText("a😀b", 9, 5, "head")).toBe("a😀");
  expect(cutText("a😀b", 9, 4, "tail")).toBe("b");
  expect(takeHead("a😀", 2)).toBe("a");
});
