import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { ProjectFormatters } from "../../src/formatter/project-formatters.ts";
import { writeTool } from "../../src/tool/edit/write.ts";
import { openProcesses } from "../../src/workspace/process/process.ts";
import { Watchdog } from "../../src/workspace/process/watchdog.ts";
import { endlessCommand } from "../support/platform/platform.ts";
import { call, toolPlace } from "./tool-place.ts";

test("a formatter that hangs is ended, and is not used after its second timeout", async () => {
  await using place = await toolPlace();
  const env = () => ({ PATH: process.env["PATH"] });
  const processes = openProcesses({ env, watchdog: new Watchdog(process.env["PATH"]) });
  const hangs = {
    name: "hangs",
    extensions: [".js"],
    command: ["sh", "-c", `echo junk > "$0"; ${endlessCommand}`, "$FILE"],
    environment: {},
    changesOthers: false,
  };
  const formatters = new ProjectFormatters({
    formatters: [hangs],
    workspace: { ...place.context.workspace, processes },
    env,
    sandbox: async () => ({ open: async () => ({ kind: "none" }) }),
    log: silentLog,
    limitMs: 300,
  });
  const format = async (name: string) => {
    const { changes = [] } = await call(writeTool, { filePath: name, content: "text\n" }, place);
    const { seen, signal } = place.context;
    const result = await formatters.format(changes, { seen, rules: [], isSandboxed: false, signal });
    expect(result.changes).toEqual(changes);
    expect(await place.text(name)).toBe("text\n");
    return result.notes.join();
  };
  expect(await format("a.js")).toBe(
    "[hangs could not format a.js (it took longer than 0.3 seconds). The file is as you wrote it.]",
  );
  expect(await format("b.js")).toContain("hangs is not used any more in this session.");
  expect(await format("c.js")).toBe("");
  await processes.endAll();
});
