import { expect, test } from "vitest";
import { expectGoldenText } from "../../support/wire/golden.ts";
import { isObject, toList, toObject, type JsonObject } from "../../support/json.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { story } from "../../support/editor/story.ts";

/** The called models, each through the APIs that serve it. */
const models = {
  claude: { model: "claude-sonnet-4-5", apis: ["chat", "messages"] },
  gpt: { model: "gpt-5.1", apis: ["chat", "responses"] },
  codex: { model: "gpt-5.1-codex", apis: ["chat", "responses"] },
  gemini: { model: "gemini-2.5-pro", apis: ["chat"] },
  small: { model: "qwen3:8b", apis: ["chat"] },
  open: { model: "qwen3-coder", apis: ["chat", "responses", "messages"] },
} as const;

const cases = Object.entries(models).flatMap(([family, { model, apis }]) =>
  apis.map((api) => ({ family, model, api })),
);

test.each(cases)(
  "two turns with tools match the golden requests of $family through $api",
  async ({ family, model, api }) => {
    const files = { "a.txt": "one\n", "b.txt": "two\n" };
    await story({ files, initialize: false }, async ({ editor, model: server, repository, home }) => {
      const limit = { context: 200_000, output: 8_000 };
      const entry = { limit, tool_call: true, reasoning: true, variants: { high: {} } };
      const options = { baseURL: server.url, apiKey: "test-key" };
      const provider = { gateway: { api, options, models: { [model]: entry } } };
      const config = { model: `gateway/${model}`, provider };
      await home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
      await editor.initialize();
      const { sessionId } = await editor.newSession();
      const read = (filePath: string) => reply.callScript("read", { filePath });
      server
        .reply(reply.think("a.txt, then."), reply.say("I look."), reply.together(read("a.txt")))
        .reply("It says one.")
        .reply(reply.think("Both."), reply.together(read("a.txt"), read("b.txt")))
        .reply("One and two.");
      await editor.prompt(sessionId, "What does a.txt say?");
      await editor.prompt(sessionId, "And both?");
      const names: [string, string][] = [
        [repository.path, "<cwd>"],
        [sessionId, "<session>"],
      ];
      expect(server.requests.map((request) => request.api)).toEqual([api, api, api, api]);
      const requests = server.requests.map((request) => normalise(request, names));
      const tools = new Set(requests.map((request) => JSON.stringify(request.tools)));
      expect([...tools]).toHaveLength(1);
      const shown = requests.map((request, at) => (at === 0 ? request : { ...request, tools: "as before" }));
      await expectGoldenText(`request.${family}.${api}.json`, `${JSON.stringify(shown, undefined, 1)}\n`);
    });
  },
);

/**
 * Returns a request without content of other files (prompts, schemas) and without values that differ from run
 * to run.
 */
function normalise({ body, headers }: ModelRequest, names: readonly [string, string][]): JsonObject {
  const { authorization, "x-api-key": key, "anthropic-version": version, "anthropic-beta": beta } = headers;
  const { tools, ...rest } = body;
  const clean = (value: unknown): unknown => {
    if (typeof value === "string")
      return names.reduce((text, [from, to]) => text.replaceAll(from, to), value);
    if (Array.isArray(value)) return value.map(clean);
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, clean(inner)]));
  };
  const sent = { authorization, "x-api-key": key, "anthropic-version": version, "anthropic-beta": beta };
  return {
    headers: sent,
    ...toObject(clean(withoutSystem(rest))),
    tools: summarise(toList(tools).map(toObject)),
  };
}

/** A longer system text is a prompt. */
const promptText = "<system prompt>";

function withoutSystem(body: JsonObject): JsonObject {
  const blank = (content: unknown): unknown =>
    Array.isArray(content) ? content.map((part) => ({ ...toObject(part), text: promptText })) : promptText;
  const isSystem = ({ role }: JsonObject) => role === "system" || role === "developer";
  const messages = (list: unknown) =>
    toList(list)
      .map(toObject)
      .map((one) => (isSystem(one) ? { ...one, content: blank(one.content) } : one));
  return {
    ...body,
    ...(body.instructions !== undefined && { instructions: promptText }),
    ...(body.system !== undefined && { system: blank(body.system) }),
    ...(body.messages !== undefined && { messages: messages(body.messages) }),
    ...(body.input !== undefined && { input: messages(body.input) }),
  };
}

/** The names of tools, their common structure, and those with a cache mark. */
function summarise(tools: readonly JsonObject[]): JsonObject {
  const partsOf = (tool: JsonObject) => toObject(tool.function ?? tool);
  const nameOf = (tool: JsonObject) => String(partsOf(tool).name);
  const formOf = ({ cache_control: _mark, ...tool }: JsonObject): unknown =>
    JSON.parse(
      JSON.stringify(tool, (name, value: unknown) => {
        if (name === "name" || name === "description") return `<${name}>`;
        return name === "parameters" || name === "input_schema" ? "<schema>" : value;
      }),
    );
  const forms = new Set(tools.map((tool) => JSON.stringify(formOf(tool))));
  const marked = tools.filter((tool) => tool.cache_control !== undefined).map(nameOf);
  return {
    names: tools.map(nameOf),
    forms: [...forms].map((form): unknown => JSON.parse(form)),
    ...(marked.length > 0 && { marked }),
  };
}
