import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { credentialsPath, loadCredentials, saveCredential } from "../../../src/model/keys/credentials.ts";
import { shownMode } from "../../support/platform/platform.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-credentials-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("without a file there are no keys", async () => {
  expect(await loadCredentials(folder)).toEqual({});
});

test("keys are stored for this user only, next to each other, and can be removed", async () => {
  const data = join(folder, "data");
  await saveCredential(data, "openai", "sk-1");
  await saveCredential(data, "__proto__x", "sk-2");
  await saveCredential(data, "openai", "sk-3");
  expect(await loadCredentials(data)).toEqual({ openai: { apiKey: "sk-3" }, __proto__x: { apiKey: "sk-2" } });
  expect((await stat(credentialsPath(data))).mode & 0o777).toBe(shownMode(0o600));
  expect((await stat(data)).mode & 0o777).toBe(shownMode(0o700));
  await saveCredential(data, "openai", undefined);
  expect(await loadCredentials(data)).toEqual({ __proto__x: { apiKey: "sk-2" } });
  expect(await readdir(data)).toEqual(["credentials.json", "storage"]);
});

test.each(["{ broken sk-secret", '{"openai": "sk-secret"}'])(
  "an invalid file is named without its content",
  async (text) => {
    await writeFile(credentialsPath(folder), text);
    const failed = await loadCredentials(folder).catch((thrown: unknown) => thrown);
    expect(String(failed)).toContain(credentialsPath(folder));
    expect(String(failed)).toContain("fairlead setup");
    expect(String(failed)).not.toContain("sk-secret");
  },
);
