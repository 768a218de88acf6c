import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { gitRepository, temporaryFolder } from "../../support/temp.ts";

const global = `{
  // mine
  "model": "work/large",
  "permission": "ask",
  "theme": "dark",
  "provider": { "work": { "options": {
    "baseURL": "http://127.0.0.1:9/v1", "apiKey": "{env:WORK_KEY}",
    "headers": { "x-team": "0123456789abcdef", "authorization": "Bearer {env:WORK_KEY}" }
  } } },
  "instructions": ["mine.md"],
}`;
const project = `{
  "instructions": ["theirs.md"],
  "permission": { "bash": { "rm *": "deny", "git *": "allow" } }
}`;

async function place(files: { home?: Record<string, string>; project?: Record<string, string> } = {}) {
  const home = await temporaryFolder({
    ".config/fairlead/fairlead.jsonc": global,
    ...files.home,
  });
  const repository = await gitRepository({ "fairlead.json": project, ...files.project });
  const run = (args: string[], env: Record<string, string> = {}) =>
    fairlead(home.path, args, { cwd: repository.path, env: { WORK_KEY: "key-0123456789", ...env } });
  return {
    run,
    globalPath: join(home.path, ".config/fairlead/fairlead.jsonc"),
    projectPath: join(repository.path, "fairlead.json"),
    [Symbol.asyncDispose]: async () => {
      await home.remove();
      await repository.remove();
    },
  };
}

describe("fairlead config show", () => {
  test("shows each value's source and hides keys", async () => {
    await using at = await place();
    const { exitCode, stdout, stderr } = await at.run(["config", "show"]);
    expect(stdout.split("\n").map((line) => line.replace(/[^\t]*[/](?=[^/]*$)/, ""))).toEqual([
      "model\twork/large\tfairlead.jsonc:3",
      "permission.*\task\tfairlead.jsonc:4",
      "permission.bash.rm *\tdeny\tfairlead.json:3",
      "theme\tdark\tfairlead.jsonc:5",
      "provider.work.options.baseURL\thttp://127.0.0.1:9/v1\tfairlead.jsonc:7",
      "provider.work.options.apiKey\t{env:WORK_KEY}\tfairlead.jsonc:7",
      "provider.work.options.headers.x-team\t(hidden)\tfairlead.jsonc:8",
      "provider.work.options.headers.authorization\tBearer {env:WORK_KEY}\tfairlead.jsonc:8",
      "instructions.0\tmine.md\tfairlead.jsonc:10",
      "instructions.1\ttheirs.md\tfairlead.json:2",
    ]);
    expect(exitCode).toBe(0);
    expect(stderr).toContain('"theme" is not supported');
    expect(stderr).toContain('permission.bash.git *: "allow"');
  });

  test("hides passwords in addresses, arguments and variables", async () => {
    await using at = await place();
    const config = {
      provider: { work: { options: { baseURL: "https://ada:hush-hush@example.org/v1" } } },
      mcp: {
        local: { type: "local", command: ["serve", "--token=hush-hush"], enabled: false },
        remote: { type: "remote", url: "https://example.org/mcp?api_key=hush-hush", enabled: false },
      },
      lsp: { own: { command: ["own"], env: { LICENCE: "hush-hush" } } },
    };
    const path = join(dirname(at.globalPath), "more.json");
    await writeFile(path, JSON.stringify(config));
    const all = await at.run(["config", "show"], { FAIRLEAD_CONFIG: path });
    const found = await at.run(["doctor"], { FAIRLEAD_CONFIG: path });
    expect(all.stdout).toContain("https://[key]@example.org/v1");
    expect(found.stdout).toContain("https://[key]@example.org/v1");
    expect(all.stdout + all.stderr + found.stdout + found.stderr).not.toContain("hush-hush");
  });

  test("shows a part of the settings, or all as JSON", async () => {
    await using at = await place();
    const { stdout } = await at.run(["config", "show", "permission.bash", "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      values: [
        {
          setting: "permission.bash.rm *",
          value: "deny",
          source: at.projectPath,
          scope: "project",
          line: 3,
          column: 37,
        },
      ],
      problems: [],
      notes: ['fairlead.jsonc: "theme" is not supported and is ignored.'],
      withheld: ["permission.bash.git *"],
    });
    const none = await at.run(["config", "show", "retry"]);
    expect([none.exitCode, none.stderr]).toEqual([1, expect.stringContaining("nothing is set under retry")]);
  });

  test("names the variable that contains a value", async () => {
    await using at = await place();
    const env = { FAIRLEAD_CONFIG_CONTENT: '{"model": "work/other"}' };
    const { stdout } = await at.run(["config", "show", "model"], env);
    expect(stdout).toBe("model\twork/other\tFAIRLEAD_CONFIG_CONTENT:1");
  });
});

describe("fairlead config check", () => {
  test("names file, line, column and expected value; valid settings apply", async () => {
    await using at = await place({
      project: { "fairlead.json": '{\n  "snapshot": "maybe",\n  "modle": 1,\n  "default_agent": "plan"\n}' },
    });
    const { exitCode, stdout } = await at.run(["config", "check"]);
    expect(exitCode).toBe(1);
    expect(stdout.split("\n").sort()).toEqual([
      `${at.projectPath}:2:15: snapshot: expected true or false, not a string`,
      `${at.projectPath}:3:12: modle: unknown setting; did you mean model?`,
    ]);
    const { stdout: shown } = await at.run(["config", "show", "default_agent"]);
    expect(shown).toContain("default_agent\tplan");
  });

  test("checks single files, and confirms valid ones", async () => {
    await using at = await place();
    const good = await at.run(["config", "check", at.globalPath]);
    expect([good.exitCode, good.stdout]).toEqual([0, "No problems found."]);
    const json = await at.run(["config", "check", "--json", at.globalPath], { WORK_KEY: "" });
    expect(JSON.parse(json.stdout)).toMatchObject({ problems: [] });
    const missing = await at.run(["config", "check", "none.json"]);
    expect([missing.exitCode, missing.stderr]).toEqual([1, expect.stringContaining("File not found:")]);
  });

  test("rejects pipes, folders, huge files and binary files", async () => {
    await using at = await place();
    const folder = dirname(at.globalPath);
    await mkdir(join(folder, "folder.json"));
    await writeFile(join(folder, "huge.json"), " ".repeat(2_000_001));
    await writeFile(join(folder, "wide.json"), '{"model":"a/b"}', "utf16le");
    await writeFile(join(folder, "bom.json"), Buffer.from([0xff, 0xfe, 0x7b, 0, 0x7d, 0]));
    await writeFile(join(folder, "empty.json"), "// nothing yet\n");
    const names = ["folder.json", "huge.json", "bom.json", "/dev/null", "wide.json", "empty.json"];
    const checked = await at.run(["config", "check", ...names.map((name) => resolve(folder, name))]);
    expect([checked.exitCode, checked.stdout.replaceAll(`${folder}/`, "").split("\n")]).toEqual([
      1,
      [
        "folder.json: not a regular file; ignored",
        "huge.json: larger than 2000000 bytes; ignored",
        expect.stringMatching(/^bom.json: not UTF-8/),
        "/dev/null: not a regular file; ignored",
        expect.stringMatching(/^wide.json: not UTF-8/),
      ],
    ]);
    const shown = await at.run(["config", "show", "model"], { FAIRLEAD_CONFIG: join(folder, "folder.json") });
    expect([shown.exitCode, shown.stdout, shown.stderr]).toEqual([
      0,
      expect.stringContaining("model\twork/large"),
      expect.stringContaining("folder.json:1:1: not a regular file; ignored"),
    ]);
  });

  test("reports a project configuration that is too large to trust", async () => {
    await using at = await place({
      project: {
        "fairlead.json": '{ "plugin": ["./many.js"] }',
        ...Object.fromEntries(
          Array.from({ length: 2_001 }, (_, number) => [`.fairlead/tools/x/${number}.txt`, ""]),
        ),
      },
    });
    const { exitCode, stdout } = await at.run(["config", "check"]);
    expect([exitCode, stdout]).toEqual([1, expect.stringContaining("too large to review and trust")]);
  });
});

test("config path lists the files by precedence, and config schema prints JSON", async () => {
  await using at = await place();
  const { stdout } = await at.run(["config", "path"]);
  const read = stdout.split("\n").filter((line) => line.startsWith("read"));
  expect(read).toEqual([`read\tglobal\t${at.globalPath}`, `read\tproject\t${at.projectPath}`]);
  const schema = await at.run(["config", "schema"]);
  expect(JSON.parse(schema.stdout)).toMatchObject({ title: "Fairlead configuration" });
});

test("OpenCode files work unchanged, with a note about settings without effect", async () => {
  const model = await startModelServer();
  await using at = await place({
    home: {
      ".config/fairlead/fairlead.jsonc": "{}",
      ".config/opencode/key.txt": "sk-from-a-file\n",
      ".config/opencode/opencode.jsonc": `{
        "$schema": "https://opencode.ai/config.json",
        /* my own server */
        "provider": {
          "local": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Local",
            "options": { "baseURL": "{env:LOCAL_URL}", "apiKey": "{file:./key.txt}" },
            "models": { "coder": { "name": "Coder", "limit": { "context": 64000, "output": 8000 } } },
          },
        },
        "model": "local/coder",
        "autoupdate": false,
        "share": "manual",
        "tools": { "webfetch": false },
        "agent": { "poet": { "mode": "primary", "prompt": "You answer in verse.", "temperature": 0.7 } },
        "keybinds": { "leader": "ctrl+x" }, // only a terminal has keys
      }`,
      ".config/opencode/command/greet.md": "---\ndescription: Greets\nagent: poet\n---\nGreet $ARGUMENTS.\n",
    },
    project: {
      "fairlead.json": "{}",
      ".opencode/agent/critic.md": "---\ndescription: Finds faults\nmode: primary\n---\nYou find faults.\n",
    },
  });
  try {
    const env = { LOCAL_URL: model.url };
    model.reply("In verse.");
    const greeted = await at.run(["run", "/greet the world"], env);
    expect([greeted.exitCode, greeted.stdout]).toEqual([0, "In verse."]);
    expect(model.requests[0]?.userText).toContain("Greet the world.");
    expect(model.requests[0]?.system).toContain("You answer in verse.");
    expect(model.requests[0]?.headers.authorization).toBe("Bearer sk-from-a-file");
    expect(model.requests[0]?.toolNames).not.toContain("webfetch");
    model.reply(reply.say("A fault."));
    expect((await at.run(["run", "--agent", "critic", "Look"], env)).stdout).toBe("A fault.");
    expect(model.requests[1]?.system).toContain("You find faults.");
    const { exitCode, stderr } = await at.run(["config", "check"], env);
    expect(exitCode).toBe(0);
    expect(stderr.split("\n").map((line) => /"(\w+)" is not supported/.exec(line)?.[1])).toEqual([
      "keybinds",
      "share",
      "autoupdate",
    ]);
    model.assertClean();
  } finally {
    await model.close();
  }
});

test("config set and unset change the user's file, and reject invalid values", async () => {
  await using at = await place({
    home: { ".config/fairlead/fairlead.jsonc": '{\n  // mine\n  "model": "a/b"\n}\n' },
    project: { "fairlead.json": '{ "model": "c/d" }' },
  });
  const set = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await at.run(["config", ...args]);
    return [exitCode, `${stdout}${stderr}`];
  };
  const read = () => readFile(at.globalPath, "utf8");
  expect(await set("set", "permission.bash", '{"*": "ask"}')).toEqual([
    0,
    expect.stringMatching(/^permission\.bash is \{"\*":"ask"\} in .*fairlead\.jsonc\.$/),
  ]);
  expect(await set("set", 'provider.openai.models."gpt-5.5".name', "Mine")).toEqual([0, expect.any(String)]);
  expect(await set("set", "model", "e/f")).toEqual([
    0,
    expect.stringContaining("another file sets it here: see fairlead config show model"),
  ]);
  expect(await read()).toMatch(/\/\/ mine\n {2}"model": "e\/f"/);
  expect(await set("unset", "model")).toEqual([0, expect.any(String)]);
  expect(await read()).not.toContain("e/f");
  expect(await read()).toContain('"gpt-5.5": {');
  const before = await read();
  expect(await set("set", "modle", "a/b")).toEqual([1, expect.stringContaining("did you mean model?")]);
  expect(await set("set", "max_steps", "many")).toEqual([1, expect.any(String)]);
  expect(await set("set", "model", "sk-ant-api03-abcdefghijklmnop")).toEqual([
    1,
    expect.stringMatching(/^(?!.*abcdefgh).*Store keys with fairlead setup/),
  ]);
  expect(await set("set", "..", "x")).toEqual([2, expect.any(String)]);
  expect(await set("set", "model")).toEqual([2, expect.stringContaining("config set needs SETTING VALUE")]);
  expect(await read()).toBe(before);
});

test("config schema --install stores the schema next to the user's file and names it", async () => {
  await using home = await temporaryFolder({ ".config/fairlead/fairlead.jsonc": "{\n  // mine\n}\n" });
  const install = () => fairlead(home.path, ["config", "schema", "--install"], { cwd: home.path });
  const { exitCode } = await install();
  const folder = join(home.path, ".config/fairlead");
  const text = await readFile(join(folder, "fairlead.jsonc"), "utf8");
  expect([exitCode, text]).toEqual([0, '{\n  "$schema": "./fairlead.schema.json"\n  // mine\n}\n']);
  const schema = JSON.parse(await readFile(join(folder, "fairlead.schema.json"), "utf8"));
  expect(schema).toMatchObject({ properties: { formatter: {}, hooks: {}, notify: {} } });
  await install();
  expect(await readFile(join(folder, "fairlead.jsonc"), "utf8")).toBe(text);
  const check = await fairlead(home.path, ["config", "check"], { cwd: home.path });
  expect(check.stdout).toBe("No problems found.");
});
