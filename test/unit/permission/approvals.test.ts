import { describe, expect, test } from "vitest";
import { type ApprovalStore, Approvals } from "../../../src/permission/approvals.ts";

const git = { permission: "bash", pattern: "git status *" };
const npm = { permission: "bash", pattern: "npm test *" };

function memoryStore(initial?: unknown) {
  const store = { kept: initial, saves: 0 };
  const door: ApprovalStore = {
    load: async () => store.kept,
    update: async (change) => {
      store.kept = change(store.kept);
      store.saves++;
    },
  };
  return { store, door };
}

describe("approvals", () => {
  test("of a session live in memory only", async () => {
    const { store, door } = memoryStore();
    const approvals = await Approvals.open(door);
    await approvals.add([git], "session");
    expect(approvals.list()).toEqual([{ ...git, scope: "session" }]);
    expect(approvals.rules()).toEqual([{ ...git, action: "allow" }]);
    expect(store).toEqual({ kept: undefined, saves: 0 });
  });

  test("of a project are loaded by the next process", async () => {
    const { store, door } = memoryStore();
    await (await Approvals.open(door)).add([git, npm], "project");
    expect(store.kept).toEqual({ approvals: [git, npm] });
    expect((await Approvals.open(door)).list()).toEqual([
      { ...git, scope: "project" },
      { ...npm, scope: "project" },
    ]);
  });

  test("given twice are stored once", async () => {
    const { store, door } = memoryStore();
    const approvals = await Approvals.open(door);
    await approvals.add([git, git], "project");
    await approvals.add([git], "project");
    expect(store.kept).toEqual({ approvals: [git] });
  });

  test("of two processes are all stored", async () => {
    const { store, door } = memoryStore();
    const [one, two] = [await Approvals.open(door), await Approvals.open(door)];
    await one.add([git], "project");
    await two.add([npm], "project");
    expect(store.kept).toEqual({ approvals: [git, npm] });
  });

  test("given at the same time are all stored", async () => {
    const { store, door } = memoryStore();
    const approvals = await Approvals.open(door);
    await Promise.all([approvals.add([git], "project"), approvals.add([npm], "project")]);
    expect(store.kept).toEqual({ approvals: [git, npm] });
  });

  test("are revoked in their scope alone", async () => {
    const { store, door } = memoryStore({ approvals: [git] });
    const approvals = await Approvals.open(door);
    await approvals.add([git], "session");
    expect(await approvals.revoke({ ...git, scope: "project" })).toBe(true);
    expect(await approvals.revoke({ ...git, scope: "project" })).toBe(false);
    expect(approvals.list()).toEqual([{ ...git, scope: "session" }]);
    expect(store.kept).toEqual({ approvals: [] });
    expect(await approvals.revoke({ ...git, scope: "session" })).toBe(true);
    expect(approvals.list()).toEqual([]);
  });

  test("without a store hold for the session", async () => {
    const approvals = new Approvals();
    await approvals.add([git], "project");
    expect(approvals.list()).toEqual([{ ...git, scope: "session" }]);
  });

  test("apply at once and reject if saving fails", async () => {
    const approvals = new Approvals({
      load: async () => undefined,
      update: async () => {
        throw new Error("disk full");
      },
    });
    await expect(approvals.add([git], "project")).rejects.toThrow("disk full");
    expect(approvals.rules()).toEqual([{ ...git, action: "allow" }]);
  });

  test.each([
    [[]],
    ["x"],
    [{ approvals: [{ permission: "", pattern: "*" }] }],
    [{ approvals: [{ pattern: "*" }] }],
  ])("stored as %j are rejected with advice", async (stored) => {
    await expect(Approvals.open(memoryStore(stored).door)).rejects.toThrow(/Delete them to be asked again/);
  });
});
