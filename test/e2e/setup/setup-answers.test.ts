import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { temporaryFolder } from "../../support/temp.ts";

const key = "sk-pasted-0123456789abcdef";
const long = "x".repeat(100_000);
/** Sent to every question; valid for none of them. */
const oddEverywhere = ["", "   ", "\u001b[31mred\u0007", "\u0000", long];
const oddInLists = [
  ...oddEverywhere,
  "0",
  "99999",
  "-1",
  "1e1",
  "zzz",
  "two words",
  "constructor",
  "__proto__",
];

/** A question of setup: its beginning, its answer, and invalid answers. */
interface Question {
  asks: string;
  odd: readonly string[];
  answer: string;
}

interface Flow {
  name: string;
  args: (url: string) => string[];
  questions: (url: string, home: string) => Question[];
  replies?: (model: ModelServer) => void;
  stored: (url: string, home: string) => object;
}

const provider: Question = { asks: "Which provider", odd: [...oddInLists, "local", key], answer: "custom" };
const way: Question = {
  asks: "Where does the key",
  odd: ["0", "zzz", "two words", long, "\u0007"],
  answer: "type",
};
/** An empty line accepts the suggested answer. */
const modelName: Question = {
  asks: "What does the provider call the model?",
  odd: [...oddEverywhere, "two words", key],
  answer: "scripted",
};
const careful: Question = { asks: "What should Fairlead ask", odd: oddInLists.slice(2), answer: "all" };
const editor: Question = { asks: "Which editor", odd: oddInLists, answer: "zed" };
const write: Question = { asks: "Write this into", odd: ["zzz", "0", "yess", "\u0007", long], answer: "y" };

const flows: Flow[] = [
  {
    name: "an address of one's own, with a typed key",
    args: () => ["setup"],
    questions: (url) => [
      provider,
      {
        asks: "Its address",
        odd: [...oddEverywhere, "zzz", "two words", "http://", "ftp://x.example/v1", "http:// x", key],
        answer: url,
      },
      { asks: "A short name", odd: ["Ä", "two words", "-", "../x", "\u0007", long, key], answer: "work" },
      way,
      { asks: "The key", odd: [...oddEverywhere, "two words", "kéy"], answer: key },
      { asks: "Which model?", odd: ["0", "zzz", "two words", long, key], answer: "scripted" },
      careful,
      editor,
      write,
    ],
    stored: (url) => ({
      permission: { edit: "ask", bash: "ask" },
      model: "work/scripted",
      provider: { work: { options: { baseURL: url }, models: { scripted: {} } } },
    }),
  },
  {
    name: "a key of a variable",
    args: (url) => ["setup", "--provider", "work", "--base-url", url, "--model", "m", "--editor", "none"],
    questions: () => [
      { ...way, answer: "env" },
      { asks: "The variable's name", odd: [...oddEverywhere, "A-B", "two words", "1A"], answer: "WORK_KEY" },
    ],
    stored: (url) => ({
      model: "work/m",
      provider: { work: { options: { baseURL: url, apiKey: "{env:WORK_KEY}" }, models: { m: {} } } },
    }),
  },
  {
    name: "a key of a file",
    args: (url) => ["setup", "--provider", "work", "--base-url", url, "--model", "m", "--editor", "none"],
    questions: (_, home) => [
      { ...way, answer: "file" },
      { asks: "The file's path", odd: oddEverywhere, answer: join(home, "key.txt") },
    ],
    stored: (url, home) => ({
      model: "work/m",
      provider: {
        work: { options: { baseURL: url, apiKey: `{file:${join(home, "key.txt")}}` }, models: { m: {} } },
      },
    }),
  },
  {
    name: "a key of a command, after a refused key and a model's display name",
    args: (url) => ["setup", "--provider", "work", "--base-url", url, "--editor", "none"],
    replies: (model) => model.reply(reply.failure(401, "That key has expired")),
    questions: () => [
      way,
      { asks: "The key", odd: [], answer: key },
      { asks: "Which model?", odd: [], answer: "Another one" },
      modelName,
      { asks: "What now?", odd: [...oddInLists.slice(2), key], answer: "again" },
      { ...way, answer: "command" },
      {
        asks: "The command",
        odd: [...oddEverywhere, '""'],
        answer: `"${process.execPath}" -p '"sk-printed-0123456789"'`,
      },
      { asks: "Which model?", odd: [], answer: "scripted" },
    ],
    stored: (url) => ({
      model: "work/scripted",
      provider: {
        work: {
          options: { baseURL: url, apiKeyCommand: [process.execPath, "-p", '"sk-printed-0123456789"'] },
          models: { scripted: {} },
        },
      },
    }),
  },
];

async function answer(flow: Flow, answersOf: (questions: Question[]) => string[]) {
  await using home = await temporaryFolder({ "key.txt": key }, "fairlead-home-");
  const model = await startModelServer();
  try {
    flow.replies?.(model);
    model.reply("ready");
    const questions = flow.questions(model.url, home.path);
    const input = answersOf(questions)
      .map((line) => `${line}\n`)
      .join("");
    const env = { WORK_KEY: key };
    const result = await fairlead(home.path, flow.args(model.url), { input, env, cwd: home.path });
    const config = await readFile(join(home.path, ".config/fairlead/fairlead.json"), "utf8").catch(() => "");
    const stored: unknown = config === "" ? undefined : JSON.parse(config);
    return { ...result, questions, stored, wanted: flow.stored(model.url, home.path) };
  } finally {
    await model.close();
  }
}

describe.each(flows)("setup with $name", (flow) => {
  test("asks again after each invalid answer, and loses no earlier one", async () => {
    const { exitCode, stderr, stdout, stored, wanted } = await answer(flow, (questions) =>
      questions.flatMap((question) => [...question.odd, question.answer]),
    );
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(stored).toEqual(wanted);
    expect(stdout).not.toContain(key);
    expect(stdout).not.toContain(long);
  });

  test("ends as cancelled and stores nothing when the input ends at any question", async () => {
    const count = flow.questions("", "").length;
    for (let answered = 0; answered < count; answered++) {
      const { exitCode, stderr, questions } = await answer(flow, (all) =>
        all.slice(0, answered).map((question) => question.answer),
      );
      const asks = questions[answered]?.asks ?? "";
      expect([asks, exitCode, stderr]).toEqual([
        asks,
        130,
        expect.stringContaining(`setup ended: no answer to: ${asks}`),
      ]);
    }
  });
});

describe("setup", () => {
  const at = async (lines: string[], args: string[] = [], env: Record<string, string> = {}) => {
    await using home = await temporaryFolder({}, "fairlead-home-");
    const input = lines.map((line) => `${line}\n`).join("");
    return await fairlead(home.path, ["setup", ...args], { input, env, cwd: home.path });
  };

  test("accepts a key that is pasted when it asks for the key's location", async () => {
    await using home = await temporaryFolder({}, "fairlead-home-");
    for (const pasted of [key, "0123456789abcdef0123456789ABCDEF", "fw_3ZkPq8sTuVwXyZ01AbCdEf"]) {
      const args = ["setup", "--provider", "openai", "--model", "gpt-5", "--editor", "none", "--no-test"];
      const { exitCode, stdout, stderr } = await fairlead(home.path, args, { input: `${pasted}\n` });
      expect([exitCode, stderr]).toEqual([0, ""]);
      expect(stdout).not.toContain(pasted);
      const keys = await readFile(join(home.path, ".local/share/fairlead/credentials.json"), "utf8");
      expect(JSON.parse(keys)).toEqual({ openai: { apiKey: pasted } });
    }
  });

  test.each(["env", "file", "command"])("accepts a key that is pasted after %s", async (kind) => {
    await using home = await temporaryFolder({}, "fairlead-home-");
    const args = ["setup", "--provider", "openai", "--model", "gpt-5", "--editor", "none", "--no-test"];
    const { exitCode, stdout } = await fairlead(home.path, args, { input: `${kind}\n${key}\n` });
    expect([exitCode, stdout.includes(key)]).toEqual([0, false]);
    const keys = await readFile(join(home.path, ".local/share/fairlead/credentials.json"), "utf8");
    expect(JSON.parse(keys)).toEqual({ openai: { apiKey: key } });
  });

  test("suggests the nearest choices for an unknown word", async () => {
    const { stdout } = await at(["local", "on this machine", "opneai", "gemini", "zzz", key]);
    const replyText = stdout.match(/(?:No such choice|That looks like).*$/gm);
    const machine = expect.stringMatching(
      /Did you mean \d+\. Ollama \(local, on this machine\), \d+\. LM Studio .*, \d+\. llama\.cpp .*, \d+\. vLLM .*\?$/,
    );
    expect(replyText).toEqual([
      machine,
      machine,
      expect.stringMatching(/Did you mean \d+\. OpenAI\?$/),
      expect.stringMatching(/Did you mean \d+\. Google Gemini\?$/),
      expect.stringMatching(/Answer with a number from 1 to \d+, or a name from the list\.$/),
      "That looks like a key, which this question does not ask for.",
    ]);
    expect(stdout).not.toContain(key);
  });

  test("accepts a displayed choice in any case", async () => {
    const { stderr } = await at(["lm studio"]);
    expect(stderr).toContain("no answer to: Where does the key of LM Studio come from?");
  });

  test("completes an address and asks for confirmation", async () => {
    const confirmed = await at(["custom", "127.0.0.1:9", "n", "127.0.0.1:9", "y"]);
    expect(confirmed.stdout.match(/Did you mean http:\/\/127\.0\.0\.1:9\/v1\?/g)).toHaveLength(2);
    expect(confirmed.stderr).toContain("no answer to: A short name");
    const meant = async (typed: string) =>
      /Did you mean (\S+)\?/.exec((await at(["custom", typed])).stdout)?.[1];
    expect(await meant("localhost:8000")).toBe("http://localhost:8000/v1");
    expect(await meant("[::1]:8000/api")).toBe("http://[::1]:8000/api");
    expect(await meant("192.168.1.7:11434")).toBe("http://192.168.1.7:11434/v1");
    expect(await meant("models.example.com")).toBe("https://models.example.com/v1");
    expect((await at(["127.0.0.1:9", "y"])).stderr).toContain("no answer to: A short name");
    const flag = await at([], ["--provider", "work", "--base-url", "localhost:8000"]);
    expect([flag.exitCode, flag.stderr]).toEqual([
      2,
      expect.stringContaining("Did you mean http://localhost:8000/v1?"),
    ]);
  });

  test("shows no pasted key on a terminal, not in any part of the line", async () => {
    await using home = await temporaryFolder({}, "fairlead-home-");
    const terminal = join(import.meta.dirname, "../../support/program/preload/as-terminal.cjs");
    const args = ["setup", "--provider", "openai", "--model", "gpt-5", "--editor", "none", "--no-test"];
    const env = { NODE_OPTIONS: `--require=${terminal}`, TERM: "dumb" };
    const { exitCode, stdout } = await fairlead(home.path, args, { input: `${key}\n`, env });
    expect(exitCode).toBe(0);
    expect(stdout).not.toContain("pasted");
  });
});
