import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { story } from "../support/editor/story.ts";
import type { Files } from "../support/temp.ts";
import { recordings } from "./recordings.ts";
import { exportSession, movePaths, parseSession, replaySession, type Setting } from "./replay-session.ts";

const names = Object.keys(recordings);

/** The folder in the stored recordings. */
const recordedFolder = "/work/shop";

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../golden/sessions/${name}.json`, import.meta.url));

test.each(names)(
  "the recorded session %s replays with the same results",
  async (name) => {
    const recording = recordings[name];
    if (recording === undefined) throw new Error(`no recording ${name}`);
    const replay = async () =>
      replaySession(parseSession(await readFile(pathOf(name), "utf8")), recording.setting);
    const isUpdate = process.env.UPDATE_GOLDEN === "1";
    if (isUpdate && (!existsSync(pathOf(name)) || (await replay()) !== "")) await record(name);
    expect(await replay()).toBe("");
  },
  60_000,
);

test("a difference is shown as a diff", async () => {
  const recorded = parseSession(await readFile(pathOf("edits"), "utf8"));
  const setting: Setting = recordings.edits?.setting ?? {};
  const files: Files = { ...setting.files, "src/cart.js": "export const total = 0;\n" };
  const difference = await replaySession(recorded, { ...setting, files });
  expect(difference).toContain("-1: export const total = (prices) =>");
  expect(difference).toContain("+1: export const total = 0;");
  expect(difference).toMatch(/^-\(call\) edit .* -> completed$/m);
  expect(difference).toMatch(/^\+\(call\) edit .* -> failed$/m);
});

test("calls of refused tools are not compared", async () => {
  const recorded = parseSession(await readFile(pathOf("edits"), "utf8"));
  const setting: Setting = recordings.edits?.setting ?? {};
  const config = { ...setting.config, permission: { bash: "deny" } };
  expect(await replaySession(recorded, { ...setting, config, refused: ["bash"] })).toBe("");
});

/** Plays the recording's script and stores the current program's export. */
async function record(name: string): Promise<void> {
  const recording = recordings[name];
  if (recording === undefined) throw new Error(`no recording ${name}`);
  const { setting } = recording;
  await story({ ...setting, permission: "allow_once" }, async (context) => {
    const { editor, model, home, repository } = context;
    const { sessionId } = await editor.newSession();
    await setting.ready?.(editor, sessionId);
    await recording.play(context, sessionId);
    model.violations.length = 0;
    const exported = await exportSession(home.path, repository.path, sessionId);
    const moved = JSON.stringify(movePaths(exported, recordedFolder), undefined, 1);
    const written = useFixedNames(moved.replaceAll(home.path, "/home/user"));
    await mkdir(dirname(pathOf(name)), { recursive: true });
    await writeFile(pathOf(name), `${written}\n`);
  });
}

/** Numbers ids in order and fixes times, so that a second recording differs only if the session does. */
function useFixedNames(text: string): string {
  const ids = new Map<string, string>();
  return text
    .replaceAll(/\b(ses|msg|prt)_[0-9A-Za-z]+/g, (id, kind: string) => {
      const name = ids.get(id) ?? `${kind}_${ids.size + 1}`;
      ids.set(id, name);
      return name;
    })
    .replaceAll(/(?<=": )1[67]\d{11}\b/g, "1700000000000")
    .replaceAll(/(?<="projectId": ")prj[0-9a-f]+/g, "prj000000000000000000000000")
    .replaceAll(/(?<="waitedMs": )\d+/g, "1");
}
