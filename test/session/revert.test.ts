import { execFile } from "node:child_process";
import { chmod, mkdir, stat, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { type FileStep, fileSteps } from "../../src/conversation/checkpoints.ts";
import { planRevert, reverse, revertFile } from "../../src/undo/revert.ts";
import { applyPatchTool } from "../../src/tool/patch/apply-patch.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { call, toolPlace, type ToolPlace } from "../tool/tool-place.ts";
import { lacksFileModes, lacksPipesAndDevices } from "../support/platform/platform.ts";

const step = (path: string, before: FileStep["before"], after: FileStep["after"]): FileStep => ({
  path,
  before,
  after,
});

/** Stores the text and returns its hash. */
async function stored({ context }: ToolPlace, text: string): Promise<string> {
  const hash = await context.workspace.snapshots.save(Buffer.from(text));
  if (hash === undefined) throw new Error("too large");
  return hash;
}

describe("the plan of an undo", () => {
  test("goes from the state after the last change to that before the first, per file", () => {
    const steps = [
      step("/b", "1", "2"),
      step("/a", null, "x"),
      step("/b", "2", "3"),
      step("/c", "y", null),
      step("/b", "3", "4"),
    ];
    expect(planRevert(steps)).toEqual([
      { path: "/a", reach: "whole", left: "x", back: null },
      { path: "/b", reach: "whole", left: "4", back: "1" },
      { path: "/c", reach: "whole", left: null, back: "y" },
    ]);
  });

  test("stops at a change by somebody else between two changes of the agent", () => {
    expect(planRevert([step("/a", "1", "2"), step("/a", "mine", "3"), step("/a", "3", "4")])).toEqual([
      { path: "/a", reach: "until-edited", left: "4", back: "mine" },
    ]);
  });

  test("stops at content that was too large, and reports that there is no way at all", () => {
    expect(planRevert([step("/a", undefined, "2"), step("/a", "2", "3")])).toEqual([
      { path: "/a", reach: "until-not-kept", left: "3", back: "2" },
    ]);
    expect(planRevert([step("/a", "1", undefined)])).toEqual([{ path: "/a", reach: "none" }]);
    expect(planRevert([step("/a", undefined, "2")])).toEqual([{ path: "/a", reach: "none" }]);
  });

  test.skipIf(lacksFileModes)(
    "makes a file that was deleted or moved with the rights that it had",
    async () => {
      await using place = await toolPlace({ "run.sh": "one\n", "secret.txt": "two\n" });
      await chmod(place.path("run.sh"), 0o755);
      await chmod(place.path("secret.txt"), 0o600);
      for (const filePath of ["run.sh", "secret.txt"]) await call(readTool, { filePath }, place);
      const moved = ["*** Update File: run.sh", "*** Move to: bin/run.sh", "@@", "-one", "+1"];
      const patchText = ["*** Begin Patch", ...moved, "*** Delete File: secret.txt", "*** End Patch"].join(
        "\n",
      );
      const { changes = [] } = await call(applyPatchTool, { patchText }, place);
      const plan = planRevert(fileSteps(changes));
      const modes = (...names: string[]) =>
        Promise.all(names.map(async (name) => (await stat(place.path(name))).mode & 0o777));
      const revert = async (reverts: typeof plan) => {
        for (const one of reverts) if (one.reach !== "none") await revertFile(place.context.workspace, one);
      };
      await revert(plan);
      expect(await modes("run.sh", "secret.txt")).toEqual([0o755, 0o600]);
      await revert(plan.map(reverse));
      expect(await modes("bin/run.sh")).toEqual([0o755]);
    },
  );

  test("restores a moved file at its old path", () => {
    const steps = fileSteps([
      {
        path: "/new",
        fromPath: "/old",
        operation: "move",
        before: "1",
        after: "2",
        additions: 1,
        deletions: 1,
      },
    ]);
    expect(planRevert(steps)).toEqual([
      { path: "/new", reach: "whole", left: "2", back: null },
      { path: "/old", reach: "whole", left: null, back: "1" },
    ]);
  });

  test("redoes the changes if reversed", () => {
    const [revert] = planRevert([step("/a", null, "1")]);
    expect(revert && reverse(revert)).toEqual({ path: "/a", reach: "whole", left: null, back: "1" });
  });
});

describe("an undone file", () => {
  test("is restored, removed or created again; a second time changes nothing", async () => {
    await using place = await toolPlace({ changed: "new", added: "new" });
    const { workspace } = place.context;
    const [old, fresh] = [await stored(place, "old"), await stored(place, "new")];
    const files = [
      { path: place.path("changed"), left: fresh, back: old },
      { path: place.path("added"), left: fresh, back: null },
      { path: place.path("deleted/deep"), left: null, back: old },
    ];
    for (const _ of ["once", "again"]) {
      const outcomes = await Promise.all(files.map((file) => revertFile(workspace, file)));
      expect(outcomes).toEqual(["changed", "removed", "made"]);
      expect([await place.text("changed"), await place.text("deleted/deep")]).toEqual(["old", "old"]);
    }
  });

  test("is not changed if it differs from the agent's version", async () => {
    await using place = await toolPlace({ edited: "mine", recreated: "mine" });
    const { workspace } = place.context;
    const [old, fresh] = [await stored(place, "old"), await stored(place, "new")];
    const outcome = (name: string, left: string | null, back: string | null) =>
      revertFile(workspace, { path: place.path(name), left, back });
    expect(await outcome("edited", fresh, old)).toEqual({ kept: "it has changed since" });
    expect(await outcome("edited", fresh, null)).toEqual({ kept: "it has changed since" });
    expect(await outcome("gone", fresh, old)).toEqual({ kept: "it has been deleted since" });
    expect(await outcome("recreated", null, old)).toEqual({
      kept: "another file has been created there since",
    });
    expect([await place.text("edited"), await place.text("recreated")]).toEqual(["mine", "mine"]);
  });

  test("is not changed through a link, outside the workspace, or if it is not a file now", async () => {
    await using place = await toolPlace({ "folder/a": "new", b: "new" });
    const { workspace } = place.context;
    const [old, fresh] = [await stored(place, "old"), await stored(place, "new")];
    const outcome = (path: string) => revertFile(workspace, { path, left: fresh, back: old });
    const elsewhere = join(place.outside, "elsewhere");
    await rename(place.path("folder"), elsewhere);
    await symlink(elsewhere, place.path("folder"));
    expect(await outcome(place.path("folder/a"))).toEqual({
      kept: `the path now leads to ${join(elsewhere, "a")}`,
    });
    expect(await outcome(join(elsewhere, "a"))).toEqual({ kept: "it is outside the workspace" });
    await rm(place.path("b"));
    await mkdir(place.path("b"));
    expect(await outcome(place.path("b"))).toEqual({ kept: "it is now a folder" });
  });

  test.skipIf(lacksPipesAndDevices)("is not changed if it is now a pipe", async () => {
    await using place = await toolPlace();
    const { workspace } = place.context;
    const [back, left] = [await stored(place, "old"), await stored(place, "new")];
    await promisify(execFile)("mkfifo", [place.path("pipe")]);
    expect(await revertFile(workspace, { path: place.path("pipe"), left, back })).toEqual({
      kept: "it is no longer a regular file",
    });
  });

  test("is not changed if its earlier content is gone", async () => {
    await using place = await toolPlace({ a: "new" });
    const left = await stored(place, "new");
    const lost = { path: place.path("a"), left, back: "0".repeat(64) };
    expect(await revertFile(place.context.workspace, lost)).toEqual({
      kept: "its earlier content is no longer stored",
    });
    expect(await place.text("a")).toBe("new");
  });
});
