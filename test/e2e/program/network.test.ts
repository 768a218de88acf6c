import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { fairlead } from "../../support/program/cli.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

const hook = join(import.meta.dirname, "../../support/program/preload/record-network.cjs");

test("a turn connects to the model's host alone and opens no port", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url);
    model
      .reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" }))
      .reply(reply.call("bash", { command: "cat a.txt" }))
      .reply("Done.");
    const recorded = join(home.path, "network.txt");
    const env = { NODE_OPTIONS: `--require=${hook}`, RECORDED_NETWORK: recorded };
    const { stdout } = await fairlead(home.path, ["run", "Change it"], { cwd: repository.path, env });
    expect(stdout).toBe("Done.");
    const lines = (await readFile(recorded, "utf8")).trim().split("\n");
    const outside = lines.filter((line) => !/^(?:connect|listen) path /.test(line));
    expect(new Set(outside)).toEqual(new Set([`connect ${new URL(model.url).host}`]));
    model.assertClean();
  } finally {
    await model.close();
  }
});
