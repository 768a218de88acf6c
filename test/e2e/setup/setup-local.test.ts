import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { readAddress } from "../../../src/cli/setup/typed-address.ts";
import { readKey } from "../../../src/cli/setup/typed-key.ts";
import { listen } from "../../support/listen.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { fairlead } from "../../support/program/cli.ts";
import { temporaryFolder } from "../../support/temp.ts";

/** Answers of a program that serves models, by path. Other paths go to the scripted model. */
type Lists = Readonly<Record<string, unknown>>;

interface Place {
  home: string;
  /** The server's address, without a path. */
  origin: string;
  reply: (text: string) => void;
  run: (
    args: string[],
    how?: { env?: Record<string, string>; lines?: string[] },
  ) => ReturnType<typeof fairlead>;
  config: () => Promise<unknown>;
}

async function atServer(lists: Lists, play: (place: Place) => Promise<void>): Promise<void> {
  await using home = await temporaryFolder({}, "fairlead-home-");
  const model = await startModelServer();
  await using server = await listen((request, response) => void answer(request, response));
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "", method = "" } = request;
    if (Object.hasOwn(lists, url)) {
      response.setHeader("content-type", "application/json").end(JSON.stringify(lists[url]));
    } else if (url === "/v1/chat/completions") {
      const body = await buffer(request);
      const { authorization = "" } = request.headers;
      const headers = { "content-type": "application/json", authorization };
      const forwarded = await fetch(`${model.url}/chat/completions`, { method, headers, body });
      response.writeHead(forwarded.status, { "content-type": forwarded.headers.get("content-type") ?? "" });
      response.end(await forwarded.text());
    } else response.writeHead(404).end("404 page not found");
  }
  try {
    await play({
      home: home.path,
      origin: server.url,
      reply: (text) => model.reply(text),
      run: (args, { env = {}, lines = [] } = {}) =>
        fairlead(home.path, args, { cwd: home.path, env, input: lines.map((line) => `${line}\n`).join("") }),
      config: async () =>
        JSON.parse(await readFile(join(home.path, ".config/fairlead/fairlead.json"), "utf8")),
    });
  } finally {
    await model.close();
  }
}

const ollama: Lists = {
  "/api/tags": {
    models: [
      {
        name: "nomic-embed-text:latest",
        model: "nomic-embed-text:latest",
        size: 274_302_450,
        details: { format: "gguf", family: "nomic-bert", parameter_size: "137M" },
      },
      { name: "gemma3:4b", model: "gemma3:4b", size: 3_338_801_804, details: { family: "gemma3" } },
      { name: "qwen3:8b", model: "qwen3:8b", size: 5_225_388_164, details: { family: "qwen3" } },
    ],
  },
  "/api/ps": { models: [] },
};
const lmstudio: Lists = {
  "/api/v0/models": {
    object: "list",
    data: [
      { id: "text-embedding-nomic", object: "model", type: "embeddings", state: "not-loaded" },
      {
        id: "qwen/qwen3-coder-30b",
        object: "model",
        type: "llm",
        arch: "qwen3moe",
        state: "loaded",
        max_context_length: 262_144,
        loaded_context_length: 32_768,
        capabilities: ["tool_use"],
      },
    ],
  },
  "/v1/models": { object: "list", data: [{ id: "qwen/qwen3-coder-30b", object: "model" }] },
};
const llamacpp: Lists = {
  "/v1/models": {
    object: "list",
    data: [
      { id: "qwen3-8b-q4_k_m.gguf", object: "model", owned_by: "llamacpp", meta: { n_ctx_train: 40_960 } },
    ],
  },
  "/props": { default_generation_settings: { n_ctx: 16_384 }, modalities: { vision: false, audio: false } },
};
const vllm: Lists = {
  "/v1/models": {
    object: "list",
    data: [
      {
        id: "Qwen/Qwen3-8B",
        object: "model",
        owned_by: "vllm",
        root: "Qwen/Qwen3-8B",
        max_model_len: 40_960,
      },
    ],
  },
};

describe("fairlead setup with the name of a local program", () => {
  test.each([
    ["ollama", "OLLAMA_HOST", ollama, "gemma3:4b"],
    ["lmstudio", "LM_STUDIO_BASE_URL", lmstudio, "qwen/qwen3-coder-30b"],
    ["llamacpp", "LLAMA_CPP_BASE_URL", llamacpp, "qwen3-8b-q4_k_m.gguf"],
    ["vllm", "VLLM_BASE_URL", vllm, "Qwen/Qwen3-8B"],
  ])("sets up %s from nothing to a first answer", async (id, variable, lists, model) => {
    await atServer(lists, async ({ origin, reply, run, config }) => {
      const env = { [variable]: id === "ollama" ? origin : `${origin}/v1` };
      reply("ready");
      const { exitCode, stdout, stderr } = await run(["setup", id], { env });
      expect([exitCode, stderr]).toEqual([0, ""]);
      expect(stdout).toContain("It answered.");
      expect(stdout).toContain(`fairlead setup ${id} --editor zed|`);
      expect(await config()).toEqual({
        model: `${id}/${model}`,
        provider: { [id]: { options: { baseURL: `${origin}/v1` }, models: { [model]: {} } } },
      });
      reply("Hello.");
      // The address is stored: an editor does not know the variable.
      expect((await run(["run", "Hi"])).stdout).toBe("Hello.");
    });
  });

  test("local finds the running program", async () => {
    await atServer(ollama, async ({ origin, reply, run, config }) => {
      reply("ready");
      const env = { OLLAMA_HOST: origin };
      expect(await run(["setup", "local"], { env })).toMatchObject({ exitCode: 0 });
      expect(await config()).toMatchObject({ model: "ollama/gemma3:4b" });
    });
  });

  test("explains how to start the program, or how to get a model", async () => {
    await atServer({ "/api/tags": { models: [] } }, async ({ origin, run, config }) => {
      const stopped = await run(["setup", "ollama"], { env: { OLLAMA_HOST: "http://127.0.0.1:9" } });
      expect([stopped.exitCode, stopped.stderr]).toEqual([
        1,
        "fairlead: Nothing listens on http://127.0.0.1:9. Start Ollama (ollama serve), or correct the address, and try again. Nothing was stored.",
      ]);
      const empty = await run(["setup", "ollama"], { env: { OLLAMA_HOST: origin } });
      expect([empty.exitCode, empty.stderr]).toEqual([
        1,
        "fairlead: Ollama answers, but has no models. Get one, such as: ollama pull qwen3:8b. Nothing was stored.",
      ]);
      await expect(config()).rejects.toThrow("ENOENT");
    });
  });

  test("suggests the provider for a misspelled one", async () => {
    await atServer({}, async ({ run }) => {
      const { exitCode, stderr } = await run(["setup", "olama"]);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining("(did you mean ollama?)")]);
      const both = await run(["setup", "ollama", "--provider", "vllm"]);
      expect([both.exitCode, both.stderr]).toEqual([2, expect.stringContaining("name different providers")]);
    });
  });
});

test("an address without a path gets /v1 if the server lists its models there", async () => {
  await atServer(vllm, async ({ origin, run, config }) => {
    const args = [
      "setup",
      "--provider",
      "work",
      "--key-from",
      "none",
      "--model",
      "m",
      "--no-test",
      "--editor",
      "none",
    ];
    for (const written of [origin, `${origin}/`, `${origin}/v1/`, `"${origin}/v1/chat/completions"`]) {
      expect(await run([...args, "--base-url", written])).toMatchObject({ exitCode: 0 });
      expect(await config()).toMatchObject({ provider: { work: { options: { baseURL: `${origin}/v1` } } } });
    }
  });
});

test.each([
  ["https://x.example/v1/", "https://x.example/v1"],
  ["<https://x.example/v1>", "https://x.example/v1"],
  ["'https://x.example/v1/responses'", "https://x.example/v1"],
  ["x.example", "https://x.example/v1"],
  ["localhost:1234/v1/models", "http://localhost:1234/v1"],
])("accepts the address %s", (typed, url) => {
  expect(readAddress(typed)).toMatchObject({ url });
});

const key = "sk-pasted-0123456789abcdef";
test.each([
  [key, key],
  [`  "${key}"\n`, key],
  [`'${key}';`, key],
  [`“${key}”`, key],
  [`export OPENAI_API_KEY=${key}`, key],
  [`export OPENAI_API_KEY="${key}"`, key],
  [`OPENAI_API_KEY=${key}`, key],
  [`$env:OPENAI_API_KEY = "${key}"`, key],
  [`OPENAI_API_KEY: ${key}`, key],
  [`Authorization: Bearer ${key}`, key],
  [`"x-api-key": "${key}"`, key],
  ["sk-pasted-01234\n  56789abcdef", key],
  ["QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="],
  ["two words", "two words"],
])("accepts the pasted key %j", (typed, read) => {
  expect(readKey(typed)).toBe(read);
});
