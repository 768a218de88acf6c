import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { once } from "node:events";
import { expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { listen } from "../../support/listen.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { writeProgram } from "../../support/platform/path-program.ts";
import { lacksShellScripts, zedSettings } from "../../support/platform/platform.ts";

type Answer = (path: string, key: string) => { status: number; body: unknown };

const list = (...ids: string[]): Answer => {
  return () => ({ status: 200, body: { data: ids.map((id) => ({ id, object: "model" })) } });
};

async function doctor(
  config: object,
  args: string[] = [],
  files: Record<string, string> = {},
  more: Record<string, string> = {},
) {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using folder = await temporaryFolder(files);
  const env = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify(config), ...more };
  const { exitCode, stdout } = await fairlead(home.path, ["doctor", ...args], { cwd: folder.path, env });
  const lines = stdout.split("\n");
  const at = lines.findIndex((line) => /^\S+ +Provider/.test(line));
  return { exitCode, stdout, provider: lines.slice(at, at + 2).join("\n") };
}

async function withServer(answer: Answer, play: (url: string, requested: string[]) => Promise<void>) {
  const requested: string[] = [];
  await using server = await listen((request, response) => {
    requested.push(`${request.method} ${request.url}`);
    const { status, body } = answer(request.url ?? "", request.headers.authorization ?? "");
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await play(`${server.url}/v1`, requested);
}

const oneProvider = (baseURL: string, model = "coder", id = "work") => ({
  model: `${id}/${model}`,
  provider: { [id]: { options: { baseURL, apiKey: "sk-work-0123456789abcdef" }, models: { [model]: {} } } },
});

/** An address where nothing listens. */
async function freeAddress(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

test("doctor sends the provider one request and reports that it answers", async () => {
  await withServer(list("coder"), async (url, requested) => {
    const { exitCode, provider } = await doctor(oneProvider(url));
    expect([exitCode, provider]).toEqual([0, expect.stringMatching(/^ok {3}Provider .*: answers\n/)]);
    expect(requested).toEqual(["GET /v1/models"]);
    const offline = await doctor(oneProvider(url), ["--offline"]);
    expect([offline.exitCode, offline.provider]).toEqual([0, expect.stringContaining("(not asked)")]);
    expect(requested).toHaveLength(1);
  });
});

test("doctor notes that an unknown context size disables compaction", async () => {
  const requested =
    /context unknown\)\n +The server is asked.*conversations are not compacted automatically: set limit/;
  expect((await doctor(oneProvider(await freeAddress()), ["--offline"])).stdout).toMatch(requested);
  const hosted = await doctor(oneProvider("https://models.example.com/v1"), ["--offline"]);
  expect(hosted.stdout).toMatch(/context unknown\)\n +While it is unknown, conversations are not compacted/);
});

test("doctor reports a stopped server, and fails if the chosen model needs it", async () => {
  const gone = await freeAddress();
  const ollama = await doctor(oneProvider(`${gone}/v1`, "qwen3", "ollama"));
  expect([ollama.exitCode, ollama.provider]).toEqual([
    1,
    expect.stringMatching(
      /^todo Provider .*\n +Nothing listens on http:\S+\d\. Start Ollama \(ollama serve\)/,
    ),
  ]);
  await withServer(list("coder"), async (url) => {
    const config = oneProvider(url);
    const other = { options: { baseURL: `${gone}/v1` } };
    const { exitCode, stdout } = await doctor({ ...config, provider: { ...config.provider, other } });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^note Provider +other at .*\n +Nothing listens on/m);
  });
});

test.each([401, 403])("doctor reports a key refused with %i without printing the key", async (status) => {
  const refuse: Answer = (_, key) => ({ status, body: { error: { message: `Wrong key ${key}` } } });
  await withServer(refuse, async (url) => {
    const { exitCode, stdout, provider } = await doctor(oneProvider(url));
    expect([exitCode, provider]).toEqual([
      1,
      expect.stringMatching(/^todo Provider .*\n +The provider refused the key \(40[13]\)/),
    ]);
    expect(stdout).not.toContain("sk-work");
  });
});

test("doctor lists the server's models when the chosen one is unknown", async () => {
  await withServer(list("qwen3:8b", "gemma"), async (url) => {
    const { exitCode, provider } = await doctor(oneProvider(url, "nonesuch", "ollama"));
    expect([exitCode, provider]).toEqual([
      1,
      expect.stringContaining(
        'does not list the model nonesuch. It has qwen3:8b, gemma. Get it with "ollama pull',
      ),
    ]);
  });
  await withServer(list("qwen3:latest"), async (url) => {
    expect((await doctor(oneProvider(url, "qwen3", "ollama"))).exitCode).toBe(0);
  });
  const unlisted: Answer = () => ({ status: 404, body: { error: { message: "Not found" } } });
  await withServer(unlisted, async (url) => {
    const { exitCode, provider } = await doctor(oneProvider(url));
    expect([exitCode, provider]).toEqual([0, expect.stringContaining("answers, lists no models")]);
  });
});

test("doctor waits two seconds for a server that does not answer", async () => {
  await using server = await listen(() => {});
  const { exitCode, provider } = await doctor(oneProvider(`${server.url}/v1`));
  expect([exitCode, provider]).toEqual([1, expect.stringContaining("did not answer within 2 s.")]);
});

test("doctor lists unused providers of other programs", async () => {
  await withServer(list("coder"), async (url) => {
    const config = oneProvider(url);
    const foreign = { "amazon-bedrock": { options: { region: "eu" } }, azure: {}, "github-copilot": {} };
    const { exitCode, stdout } = await doctor({ ...config, provider: { ...config.provider, ...foreign } });
    expect(exitCode).toBe(0);
    for (const [id, name] of [
      ["amazon-bedrock", "Amazon Bedrock"],
      ["azure", "Azure OpenAI"],
      ["github-copilot", "GitHub Copilot"],
    ] as const) {
      expect(stdout).toContain(`note Provider       ${id} is configured and cannot be used`);
      expect(stdout).toContain(`Fairlead does not speak the protocol of ${name}.`);
    }
  });
});

test("run fails at once when no local server is listening", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  const gone = await freeAddress();
  const env = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify(oneProvider(`${gone}/v1`, "qwen3", "ollama")) };
  const { exitCode, stderr } = await fairlead(home.path, ["run", "Hi"], { env });
  expect(exitCode).toBe(5);
  expect(stderr).toContain(`Nothing listens on ${gone}. Start Ollama (ollama serve)`);
  expect(stderr).not.toContain("tried");
});

/** A server with these APIs; others do not exist. */
const serving = (...paths: string[]): Answer => {
  const models = list("coder", "claude-opus-4.5");
  return (path, key) => {
    if (path === "/v1/models") return models(path, key);
    const isServed = paths.some((served) => path === `/v1${served}`);
    const message = isServed ? "model: Field required" : "Not Found";
    return { status: isServed ? 400 : 404, body: { error: { message } } };
  };
};

const withApi = (config: ReturnType<typeof oneProvider>, api: string, id = "work") => ({
  ...config,
  provider: { [id]: { api, ...config.provider[id] } },
});

test.each([
  ["responses", "/responses"],
  ["messages", "/messages"],
])("doctor tries the API %s of the chosen model without a paid request", async (api, path) => {
  await withServer(serving(path), async (url, asked) => {
    const { exitCode, provider, stdout } = await doctor(withApi(oneProvider(url), api));
    expect([exitCode, provider]).toEqual([0, expect.stringContaining(`: answers on ${path}\n`)]);
    expect(asked).toEqual(["GET /v1/models", `POST /v1${path}`]);
    expect(stdout).toMatch(new RegExp(`Model +work/coder \\(${api}, context unknown\\)`, "i"));
  });
});

test("doctor names the API to use if the server lacks the configured one", async () => {
  await withServer(serving("/chat/completions"), async (url) => {
    const { exitCode, provider } = await doctor(withApi(oneProvider(url), "responses"));
    expect([exitCode, provider]).toEqual([
      1,
      expect.stringMatching(
        /^todo Provider .*\n +There is no \/responses at http\S+\. It answers on \/chat\/completions: set "api": "chat" in provider\.work\./,
      ),
    ]);
  });
  await withServer(serving(), async (url) => {
    const { provider } = await doctor(withApi(oneProvider(url), "messages"));
    expect(provider).toContain("Is provider.work.options.baseURL right?");
  });
  // LM Studio answers unknown paths with 200.
  const lmStudio: Answer = (path, key) =>
    path === "/v1/models"
      ? list("coder")(path, key)
      : { status: 200, body: { error: `Unexpected endpoint or method. (POST ${path})` } };
  await withServer(lmStudio, async (url) => {
    const { exitCode, provider } = await doctor(withApi(oneProvider(url), "responses"));
    expect([exitCode, provider]).toEqual([1, expect.stringContaining("There is no /responses at")]);
  });
});

test("doctor and models show that a model writes its calls as text", async () => {
  const work = {
    options: { baseURL: "https://ai.example.com/v1" },
    models: { coder: {} },
    tool_calls: "text",
  };
  const config = { model: "work/coder", provider: { work } };
  const { exitCode, stdout } = await doctor(config, ["--offline"]);
  expect(exitCode).toBe(0);
  expect(stdout).toContain(
    'note Model          runs without native tool calls\n     Its calls are read from its text. Remove "tool_calls": "text" from provider.work once',
  );
  await using home = await temporaryFolder({}, "fairlead-home-");
  const env = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify(config) };
  const listed = await fairlead(home.path, ["models"], { env });
  expect(listed.stdout).toMatch(/^work\/coder\t.*\tnative tool calls/m);
  const refused = {
    ...config,
    provider: { work: { ...work, tool_calls: undefined, models: { coder: { tool_call: false } } } },
  };
  expect((await doctor(refused, ["--offline"])).stdout).toContain('or set "tool_calls": "text" for it under');
});

test.skipIf(lacksShellScripts)(
  "over SSH, doctor prints the editor's command and finds noisy startup files",
  async () => {
    await using shells = await temporaryFolder();
    const report = async (start: string) => {
      const path = join(shells.path, "sh");
      await writeFile(path, `#!/bin/sh\n${start}\nexec /bin/sh "$@"\n`, { mode: 0o755 });
      const remote = { SSH_CONNECTION: "192.0.2.1 1 192.0.2.2 22", SHELL: path };
      return (await doctor({}, ["--offline"], {}, remote)).stdout;
    };
    expect(await report(":")).toMatch(/^ok +SSH +from other machines: ssh -T \S+ exec \/\S+ \S+ acp$/m);
    expect(await report("echo Welcome")).toMatch(/^todo SSH[^]* print "Welcome"[^]*\*\) return ;; esac$/m);
    expect(await report("exit 3")).toMatch(/^todo SSH[^]* failed as ssh runs it/m);
    expect((await doctor({}, ["--offline"])).stdout).not.toContain("SSH");
  },
);

test("doctor and models list what a model lacks, and what to do", async () => {
  const chat = { api: "chat", options: { apiKey: "sk-work-0123456789abcdef" } };
  const config = { model: "anthropic/claude-opus-5-5", provider: { anthropic: chat, openai: chat } };
  const { exitCode, stdout } = await doctor(config, ["--offline"]);
  expect(exitCode).toBe(0);
  const advice =
    'Chat completions of Anthropic do not offer it. Remove "api": "chat" from provider.anthropic.';
  for (const feature of ["thinking", "prompt cache"])
    expect(stdout).toContain(`note Model          runs without ${feature}\n     ${advice}`);
  const astra = await doctor({ ...config, model: "openai/gpt-6-astra" }, ["--offline"]);
  expect(astra.stdout).toContain("note Model          runs without tool calls\n");

  const gateway = { options: { baseURL: "https://ai.example.com/v1" }, models: { "gpt-5.5": {}, plain: {} } };
  const own = { model: "openai/gpt-5.5", provider: { openai: gateway } };
  const routed = await doctor(own, ["--offline"]);
  expect(routed.stdout).toMatch(/Model +openai\/gpt-5\.5 \(chat completions, 1,050,000 tokens of context\)/);
  expect(routed.stdout).toContain(
    'Set "api": "responses" in provider.openai if the server has that API; fairlead doctor then checks it.',
  );
  await using home = await temporaryFolder({}, "fairlead-home-");
  const env = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify(own) };
  const listed = await fairlead(home.path, ["models"], { env });
  expect(listed.stdout).toMatch(/^openai\/gpt-5\.5\t.*\tthinking$/m);
  expect(listed.stdout).toMatch(/^openai\/plain\t.*\tknown context window$/m);
  expect(listed.stderr).toContain(
    "Without thinking: openai/gpt-5.5. Chat completions of OpenAI do not offer it.",
  );
  expect(listed.stderr).toContain("Without known context window: openai/plain. While it is unknown");
  const json = await fairlead(home.path, ["models", "--json"], { env });
  expect(JSON.parse(json.stdout)).toMatchObject([
    { id: "openai/gpt-5.5", api: "chat", without: ["thinking"] },
    { id: "openai/plain", without: ["known context window"] },
  ]);
});

test("doctor lists language servers with their state, and what to do", async () => {
  await using bin = await temporaryFolder();
  const program = await writeProgram(bin.path, "gopls");
  const PATH = [bin.path, "/usr/bin", "/bin"].join(delimiter);
  const lsp = { rust: {}, own: { command: ["own-server"], extensions: [".own"] }, zls: { disabled: true } };
  const config = { ...oneProvider(await freeAddress()), lsp };
  const { stdout } = await doctor(config, ["--offline"], { "main.go": "", "a.own": "" }, { PATH });
  const lines = stdout.split("\n").filter((line) => / Language /.test(line));
  expect(lines).toEqual([
    "note Language       rust: configured, not found",
    "ok   Language       own (own-server): used",
    "ok   Language       zls: disabled in the configuration",
    `note Language       gopls (${program}): installed, not used yet`,
  ]);
});

test("doctor distinguishes region, credit and model access from a wrong key", async () => {
  for (const [message, found] of [
    ["Country, region, or territory not supported", "The provider does not serve your region (403)"],
    ["insufficient credits", "The account has no credit left (403)"],
    ["You do not have access: no access to this model", "The key may not use this model (403)"],
  ] as const) {
    const refuse: Answer = () => ({ status: 403, body: { error: { message } } });
    await withServer(refuse, async (url) => {
      const { exitCode, provider } = await doctor(oneProvider(url));
      expect([exitCode, provider]).toEqual([1, expect.stringContaining(found)]);
      expect(provider).not.toContain("refused the key");
    });
  }
});

test("doctor connects to MCP servers, and names agents whose model cannot be used", async () => {
  const server = join(
    import.meta.dirname,
    "../../../node_modules/@modelcontextprotocol/server-memory/dist/index.js",
  );
  await withServer(list("coder"), async (url) => {
    const config = {
      ...oneProvider(url),
      mcp: {
        memory: { type: "local", command: [process.execPath, server] },
        gone: { type: "local", command: ["no-such-program-0"] },
        off: { type: "local", command: ["x"], enabled: false },
      },
      agent: { poet: { model: "nowhere/verse", prompt: "Verse.", mode: "primary" } },
    };
    const { exitCode, stdout } = await doctor(config);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^ok {3}MCP +memory: connected, \d+ tools$/m);
    expect(stdout).toMatch(/^todo MCP +gone: does not connect\n +\S.*no-such-program-0/m);
    expect(stdout).toMatch(/^ok {3}MCP +off: disabled/m);
    expect(stdout).toMatch(
      /^todo Agent +poet wants the model nowhere\/verse, which cannot be used\n +Configure/m,
    );
    const offline = await doctor(config, ["--offline"]);
    expect(offline.stdout).toMatch(/^ok {3}MCP +memory, gone, off \(not started\)$/m);
  });
});

test("doctor checks which program each editor starts", async () => {
  const own = join(import.meta.dirname, "../../../bin/fairlead.js");
  const zed = (...command: string[]) =>
    JSON.stringify({
      agent_servers: { Fairlead: { type: "custom", command: command[0], args: command.slice(1) } },
    });
  const editors = async (files: Record<string, string>) => {
    await using home = await temporaryFolder(files, "fairlead-home-");
    const { stdout } = await fairlead(home.path, ["doctor", "--offline"]);
    return stdout.slice(stdout.search(/^\S+ +Editor/m)).split(/\n(?=\S+ +(?!Editor)[A-Z])/)[0];
  };
  const settings = zedSettings;
  expect(await editors({ [settings]: `// mine\n${zed(process.execPath, own, "acp")}` })).toBe(
    "ok   Editor         Zed: Fairlead starts this program",
  );
  expect(await editors({ [settings]: zed(process.execPath, "/gone/bin/fairlead.js", "acp") })).toMatch(
    /^todo Editor .*\n +\/gone\/bin\/fairlead\.js does not exist\. fairlead setup --editor zed/,
  );
  expect(await editors({ [settings]: zed("no-such-program-0", "acp") })).toMatch(
    /^todo Editor +Zed: Fairlead starts no-such-program-0 acp\n +no-such-program-0 does not exist/,
  );
  expect(await editors({ [settings]: zed(process.execPath, own) })).toContain("The argument acp is missing");
  expect(await editors({ [settings]: "{}" })).toMatch(/^note Editor +Zed: not connected/);
  expect(
    await editors({
      ".jetbrains/acp.json": zed(process.execPath, own, "acp"),
      ".config/nvim/lua/agents.lua": 'adapter = "fairlead"',
      ".emacs.d/init.el": "(setq x 1)",
    }),
  ).toMatch(
    /^ok {3}Editor +JetBrains IDEs: Fairlead starts this program\nok {3}Editor +Neovim: \S+agents\.lua names Fairlead\nnote Editor +Emacs: not connected/,
  );
});

test("doctor reports formatters, permissions without a tool, and misspellings", async () => {
  const config = {
    permission: { edits: "deny", deploy: "ask", shared_echo: "allow", "notes_*": "allow" },
    mcp: { shared: { type: "local", command: ["true"], enabled: false } },
    formatter: {
      own: { command: ["sh", "$FILE"], extensions: [".x"] },
      gone: { command: ["no-such-formatter", "$FILE"], extensions: [".y"] },
      vague: {},
    },
  };
  const { stdout } = await doctor(config, ["--offline"]);
  expect(stdout).toContain('permission.edits: "edits" is not a permission; did you mean "edit"?');
  expect(stdout).toContain("note Permission     deploy: no tool has this name\n");
  expect(stdout).not.toContain("shared_echo: no tool");
  expect(stdout).toContain("ok   Formatter      own (.x)\n");
  expect(stdout).toContain("note Formatter      gone: cannot run\n");
  expect(stdout).toContain('formatter.vague is not used: it needs "command" and "extensions"');
});
