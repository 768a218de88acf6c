import { readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { execa } from "execa";
import { beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { environment } from "../support/environment.ts";
import { temporaryFolder } from "../support/temp.ts";

const checkout = join(import.meta.dirname, "../..");
const config = {
  model: "local/m",
  provider: { local: { options: { baseURL: "http://127.0.0.1:1/v1", apiKey: "k" }, models: { m: {} } } },
  permission: { bash: { "git *": "allow" } },
};

let loaded: string[];
beforeAll(async () => {
  await using home = await temporaryFolder();
  loaded = await filesOfFirstSession(home.path);
});

test("a first session/new is answered by the program's own parts alone", () => {
  expect(loaded.filter((path) => !path.startsWith(join(checkout, "dist")))).toEqual([
    join(checkout, "bin/fairlead.js"),
  ]);
});

test("a first session/new needs no library of schemas, of the protocol or of models, no tool and no log", () => {
  const late = /terminal\/wait_for_exit|AI_APICallError|ZodObject|sonic-boom/;
  const found = loaded.filter((path) => late.test(readFileSync(path, "utf8")));
  expect(found.map((path) => basename(path))).toEqual([]);
});

test("what a first session/new loads stays small", () => {
  const bytes = loaded.reduce((sum, path) => sum + statSync(path).size, 0);
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes).toBeLessThan(450_000);
});

async function filesOfFirstSession(home: string): Promise<string[]> {
  const hook = join(checkout, "test/support/loaded-parts.cjs");
  const program = execa(process.execPath, ["--require", hook, join(checkout, "bin/fairlead.js"), "acp"], {
    env: { ...environment(home), FAIRLEAD_CONFIG_CONTENT: JSON.stringify(config) },
    extendEnv: false,
    timeout: 20_000,
    forceKillAfterDelay: 1_000,
  });
  request(program, 0, "initialize", { protocolVersion: 1, clientCapabilities: {} });
  request(program, 1, "session/new", { cwd: home, mcpServers: [] });
  let told = "";
  for await (const line of program.iterable({ from: "stderr" })) {
    if (told === "" && line.startsWith("loaded ")) told = line.slice("loaded ".length);
    program.stdin?.end();
  }
  return z.array(z.string()).parse(JSON.parse(told));
}

function request(
  program: { stdin: NodeJS.WritableStream | null },
  id: number,
  method: string,
  params: unknown,
) {
  program.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
}
