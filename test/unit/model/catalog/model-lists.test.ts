import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { silentLog } from "../../../../src/base/log.ts";
import { KeyCommands } from "../../../../src/model/keys/key-command.ts";
import type { KnownModel } from "../../../../src/model/catalog/known-models.ts";
import { listModels, type ListedModels } from "../../../../src/model/catalog/list-models.ts";
import { toKnownModel } from "../../../../src/model/catalog/listed-model.ts";
import { listProblems, ModelLists } from "../../../../src/model/catalog/model-lists.ts";
import { askWindow } from "../../../../src/model/catalog/server-window.ts";
import { type Provider, usableProviders } from "../../../../src/model/catalog/usable-providers.ts";
import { temporaryFolder } from "../../../support/temp.ts";
import { listen } from "../../../support/listen.ts";

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server[Symbol.asyncDispose]();
});

type Answer = { status?: number; body: unknown; headers?: Record<string, string> } | "never";
type Script = (path: string, request: IncomingMessage, body: string) => Answer;

async function serve(script: Script): Promise<string> {
  const server = await listen((request, response) => {
    void text(request).then((body) => {
      const answer = script(`${request.method} ${request.url}`, request, body);
      if (answer === "never") return;
      const sent = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body);
      response
        .writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers })
        .end(sent);
    });
  });
  open.push(server);
  return `${server.url}/v1`;
}

function provider(id: string, baseURL: string, more: { discover?: boolean } = {}): Provider {
  const config = { provider: { [id]: { options: { baseURL, apiKey: "the-secret-key" }, ...more } } };
  const found = usableProviders({ config, env: {}, credentials: {} }).get(id);
  if (found === undefined) throw new Error(`${id} cannot be used`);
  return found;
}

const ask = (requested: Provider): Promise<ListedModels> =>
  listModels(requested, new AbortController().signal);

describe("an entry of a list is parsed as", () => {
  test.each<[string, unknown, KnownModel | undefined]>([
    ["OpenAI writes it", { id: "gpt-5", object: "model", created: 0 }, { id: "gpt-5", name: "gpt-5" }],
    [
      "OpenRouter writes it",
      {
        id: "a/b",
        name: "B",
        context_length: 200_000,
        architecture: { input_modalities: ["text", "image", "file"] },
        pricing: { prompt: "0.000003", completion: "0.000015", input_cache_read: "0.0000003" },
        top_provider: { max_completion_tokens: 64_000 },
        supported_parameters: ["tools", "reasoning"],
      },
      {
        id: "a/b",
        name: "B",
        context: 200_000,
        output: 64_000,
        cost: { input: 3, output: 15, cacheRead: 0.3 },
        takes: ["image", "pdf"],
        reasoning: true,
        tools: true,
      },
    ],
    [
      "Mistral writes it",
      {
        id: "m",
        max_context_length: 131_072,
        capabilities: { completion_chat: true, function_calling: true, vision: false },
      },
      { id: "m", name: "m", context: 131_072, takes: [], tools: true },
    ],
    [
      "Groq writes it",
      { id: "g", context_window: 8_192, active: true },
      { id: "g", name: "g", context: 8_192 },
    ],
    ["vLLM writes it", { id: "v", max_model_len: 32_768 }, { id: "v", name: "v", context: 32_768 }],
    [
      "LM Studio writes it",
      { id: "l", type: "vlm", max_context_length: 32_768, loaded_context_length: 8_192 },
      { id: "l", name: "l", context: 8_192, takes: ["image"] },
    ],
    ["Google writes it", { id: "models/gemini-x" }, { id: "gemini-x", name: "gemini-x" }],
    [
      "GitHub writes it",
      {
        id: "openai/gpt-4.1",
        name: "OpenAI GPT-4.1",
        limits: { max_input_tokens: 1_048_576, max_output_tokens: 32_768 },
        supported_input_modalities: ["text", "image"],
        capabilities: ["streaming", "tool-calling"],
      },
      {
        id: "openai/gpt-4.1",
        name: "OpenAI GPT-4.1",
        context: 1_048_576,
        output: 32_768,
        takes: ["image"],
        tools: true,
      },
    ],
    ["nothing where it is for embeddings", { id: "e", type: "embeddings" }, undefined],
    ["nothing where its name says what it is for", { id: "text-embedding-3-small" }, undefined],
    ["nothing where it is switched off", { id: "old", active: false }, undefined],
    ["nothing where its name is endless", { id: "x", name: "y".repeat(1_000) }, undefined],
    ["nothing without an id", { name: 3 }, undefined],
    ["nothing where it is no object", "gpt", undefined],
    [
      "far as its figures make sense",
      { id: "x", context_length: "many", pricing: 7 },
      { id: "x", name: "x" },
    ],
  ])("%s", (_name, entry, model) => {
    expect(toKnownModel(entry)).toEqual(model);
  });
});

describe("a list of models", () => {
  test("is requested with the key, at the given address", async () => {
    const seen: unknown[] = [];
    const base = await serve((path, { headers }) => {
      seen.push([path, headers.authorization]);
      return { body: { data: [{ id: "one" }] } };
    });
    expect(await ask(provider("mine", `${base}/`))).toEqual({
      outcome: "listed",
      models: [{ id: "one", name: "one" }],
      isCut: false,
    });
    expect(seen).toEqual([["GET /v1/models", "Bearer the-secret-key"]]);
  });

  test("of Ollama gives the loaded context, the configured one, or the possible one", async () => {
    const base = await serve((path, _request, body) => {
      if (path === "GET /api/tags")
        return { body: { models: ["a", "b", "c", "e"].map((name) => ({ name })) } };
      if (path === "GET /api/ps") return { body: { models: [{ name: "a", context_length: 4_096 }] } };
      const shown: { model: string } = JSON.parse(body);
      const model_info = { "qwen3.context_length": 40_960 };
      if (shown.model === "b") return { body: { model_info, parameters: 'stop "x"\nnum_ctx 16384' } };
      if (shown.model === "e") return { body: { capabilities: ["embedding"] } };
      return { body: { model_info, capabilities: ["completion", "tools", "vision", "thinking"] } };
    });
    const able = { takes: ["image"], reasoning: true, tools: true };
    expect(await ask(provider("ollama", base))).toEqual({
      outcome: "listed",
      models: [
        { id: "a", name: "a", context: 4_096, ...able },
        { id: "b", name: "b", context: 16_384 },
        { id: "c", name: "c", context: 40_960, ...able },
      ],
      isCut: false,
    });
  });

  test("of llama.cpp and LM Studio contains the loaded context", async () => {
    const base = await serve((path) => {
      if (path === "GET /props")
        return { body: { default_generation_settings: { n_ctx: 12_288 }, modalities: { vision: true } } };
      if (path === "GET /api/v0/models")
        return { body: { data: [{ id: "l", type: "llm", loaded_context_length: 9_000 }] } };
      return { body: { data: [{ id: "local", meta: { n_ctx_train: 131_072 } }] } };
    });
    expect(await ask(provider("llamacpp", base))).toMatchObject({
      models: [{ id: "local", context: 12_288, takes: ["image"] }],
    });
    expect(await ask(provider("lmstudio", base))).toMatchObject({ models: [{ id: "l", context: 9_000 }] });
  });

  test("a server that never answers leaves its window unknown", async () => {
    const base = await serve(() => "never");
    const { signal } = new AbortController();
    for (const id of ["ollama", "mine"])
      expect(await askWindow(provider(id, base), "one", signal)).toBeUndefined();
  });

  test("is limited, and says if there were more", async () => {
    const data = Array.from({ length: 1_200 }, (_, index) => ({ id: `m${index}` }));
    const base = await serve(() => ({ body: { data } }));
    const listed = await ask(provider("mine", base));
    expect(listed).toMatchObject({ outcome: "listed", isCut: true });
    expect(listed.outcome === "listed" && listed.models.length).toBe(1_000);
  });

  test.each<[string, Answer, RegExp]>([
    [
      "a refused key",
      { status: 401, body: { error: { message: "bad key the-secret-key" } } },
      /refused the key \(401\).*bad key \[key\]/,
    ],
    ["no such address", { status: 404, body: "" }, /does not know/],
    [
      "a web page",
      { body: "<html><title>Hi</title></html>", headers: { "content-type": "text/html" } },
      /web page \("Hi"\)/,
    ],
    ["something else than JSON", { body: "pong" }, /not JSON/],
    ["JSON that is no list", { body: { ok: true } }, /not a list of models/],
    [
      "a redirect to another host",
      { status: 302, body: "", headers: { location: "http://elsewhere.example/v1/models" } },
      /The key is not sent to another host/,
    ],
  ])("fails with an explanation for %s", async (_name, answer, words) => {
    const listed = await ask(provider("mine", await serve(() => answer)));
    expect(listed).toEqual({ outcome: "failed", message: expect.stringMatching(words) });
  });

  test("fails with an explanation if nothing listens, and ends with the caller", async () => {
    const gone = await serve(() => "never");
    await open.pop()?.[Symbol.asyncDispose]();
    expect(await ask(provider("mine", gone))).toEqual({
      outcome: "failed",
      message: expect.stringContaining("Nothing listens on http://127.0.0.1:"),
    });
    const base = await serve(() => "never");
    const stop = new AbortController();
    const asking = listModels(provider("mine", base), stop.signal);
    stop.abort();
    expect(await asking).toMatchObject({ outcome: "failed" });
  });
});

describe("stored lists", () => {
  const lists = (folder: string) =>
    new ModelLists({
      folder,
      lockFolder: join(folder, "lock"),
      keyCommands: new KeyCommands({ PATH: process.env.PATH }, () => {}),
      log: silentLog,
    });

  test("are available in the next run with their date, for that address only", async () => {
    await using folder = await temporaryFolder();
    const base = await serve(() => ({ body: { data: [{ id: "one" }] } }));
    const mine = provider("../../mine", base);
    await lists(folder.path).refresh(mine);
    const stored = await lists(folder.path).load([mine, provider("../../mine", `${base}/other`)]);
    expect([...stored.values()]).toEqual([
      {
        provider: "../../mine",
        baseURL: base,
        date: expect.stringMatching(/^\d{4}-/),
        models: [{ id: "one", name: "one" }],
      },
    ]);
  });

  test("are requested with the key that a command prints, again after a rejection", async () => {
    await using folder = await temporaryFolder({ "key.txt": "old-key" });
    const base = await serve((_path, { headers }) =>
      headers.authorization === "Bearer new-key"
        ? { body: { data: [{ id: "one" }] } }
        : { status: 401, body: { error: "unauthorized" } },
    );
    const keyFile = join(folder.path, "key.txt");
    const printing = (program: string): Provider => ({
      ...provider("mine", base),
      apiKey: undefined,
      keyCommand: [process.execPath, "-e", program],
    });
    const mine = printing(`process.stdout.write(require("fs").readFileSync(${JSON.stringify(keyFile)}))`);
    const one = lists(folder.path);
    expect(await one.refresh(mine)).toMatchObject({ message: expect.stringContaining("401") });
    await folder.write({ "key.txt": "new-key\n" });
    expect(await one.refresh(mine)).toMatchObject({ outcome: "listed" });
    expect(await one.refresh(printing('process.stderr.write("locked"); process.exit(3)'))).toEqual({
      outcome: "failed",
      message: expect.stringContaining("locked"),
    });
  });

  test("remain when a later attempt fails, and the failure is reported", async () => {
    await using folder = await temporaryFolder();
    let status = 200;
    const base = await serve(() => ({ status, body: { data: [{ id: "one" }] } }));
    const mine = provider("mine", base);
    const one = lists(folder.path);
    await one.refresh(mine);
    status = 500;
    await one.refresh(mine);
    const stored = await one.load([mine]);
    expect(stored.get("mine")?.models).toEqual([{ id: "one", name: "one" }]);
    expect(listProblems(stored)).toEqual([
      expect.stringMatching(/^The models of mine could not be listed: .*500/),
    ]);
  });

  test("are requested automatically only if configured, once", async () => {
    await using folder = await temporaryFolder();
    let requested = 0;
    const base = await serve(() => {
      requested++;
      return { body: { data: [{ id: "one" }] } };
    });
    const one = lists(folder.path);
    const keep = async (provider: Provider) => one.keepFresh([provider], await one.load([provider]));
    await keep(provider("mine", base));
    const wanted = provider("mine", base, { discover: true });
    await keep(wanted);
    await keep(wanted);
    await one.close();
    expect(requested).toBeLessThanOrEqual(1);
    const two = lists(folder.path);
    await two.refresh(wanted);
    requested = 0;
    two.keepFresh([wanted], await two.load([wanted]));
    await two.close();
    expect(requested).toBe(0);
  });
});
