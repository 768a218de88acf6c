import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/temp.ts";
import { openShared, shared } from "./support/shared-state.ts";

const program = fileURLToPath(new URL("./programs/change-shared.ts", import.meta.url));
const times = 6;

const namesOf = (makers: readonly string[], each: number) =>
  makers.flatMap((maker) => Array.from({ length: each }, (_, number) => `${maker}${number}`)).sort();

test.each(Object.keys(shared))("eight sessions of one process lose nothing of their %s", async (kind) => {
  await using folder = await temporaryFolder();
  const makers = "abcdefgh".split("");
  const state = openShared(kind, folder.path);
  await Promise.all(makers.map((maker) => state.add(`${maker}0`)));
  expect((await state.names()).sort()).toEqual(namesOf(makers, 1));
});

test.each(Object.keys(shared))("four processes at once lose nothing of their %s", async (kind) => {
  await using folder = await temporaryFolder();
  const makers = "abcd".split("");
  const running = makers.map((maker) =>
    execa(process.execPath, [program, folder.path, kind, maker, `${times}`]),
  );
  await Promise.all(running.map(({ stdout }) => once(stdout, "data")));
  for (const { stdin } of running) stdin.end();
  await Promise.all(running);
  const names = await openShared(kind, folder.path).names();
  expect(names.sort()).toEqual(namesOf(makers, times));
});
