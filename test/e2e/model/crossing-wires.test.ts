import { expect, test } from "vitest";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { encrypt, createSeal } from "../../support/model/seal.ts";
import { story } from "../../support/editor/story.ts";
import { agentText } from "../../support/transcript.ts";

const apis = ["chat", "responses", "messages"] as const;
type Api = (typeof apis)[number];
const pairs = apis.flatMap((from) => apis.map((to) => ({ from, to })));

/** A vendor's model and the API through which it is called. */
const vendor = (api: Api, { url }: ModelServer) => ({
  api,
  options: { baseURL: url, apiKey: "test-key" },
  models: { m: { limit: { context: 200_000, output: 8_000 }, tool_call: true, reasoning: true } },
});

/**
 * Scripts a model that thinks, reads a file and answers. Returns the data that only its vendor may receive
 * again.
 */
function scriptTurn(server: ModelServer, name: string): readonly string[] {
  const thought = `The ${name} model thinks of a.txt.`;
  const id = `${name}_call`;
  server
    .reply(
      reply.think(thought),
      reply.say(`${name} looks.`),
      reply.call("read", { filePath: "a.txt" }, { id }),
    )
    .reply(reply.think(thought), reply.say(`${name} is done.`));
  return [createSeal(thought), encrypt(thought)];
}

/** Ids that a server gives to its answers and their items. */
const serverIds = /\b(resp|rs|fc)_\d/;

test.each(pairs)("a session continues from $from to $to and back", async ({ from, to }) => {
  await using servers = new AsyncDisposableStack();
  const other = servers.adopt(await startModelServer(), (server) => server.close());
  await story({ files: { "a.txt": "one\n" }, initialize: false }, async ({ editor, model, home }) => {
    const provider = { first: vendor(from, model), second: vendor(to, other) };
    const config = { model: "first/m", provider };
    await home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
    await editor.initialize();
    const { sessionId } = await editor.newSession();
    const turn = async (server: ModelServer, name: string) => {
      const secrets = scriptTurn(server, name);
      await editor.setConfigOption(sessionId, "model", `${name}/m`);
      expect((await editor.prompt(sessionId, `Ask the ${name}.`)).stopReason).toBe("end_turn");
      return secrets;
    };
    const ofFirst = await turn(model, "first");
    const ofSecond = await turn(other, "second");
    await turn(model, "first");
    expect(agentText(editor.updates(sessionId)).split("is done.")).toHaveLength(4);

    const toSecond = other.requests.map(({ body }) => JSON.stringify(body));
    for (const body of toSecond) {
      for (const secret of ofFirst) expect(body).not.toContain(secret);
      for (const words of ["first looks.", "first is done.", "1: one"]) expect(body).toContain(words);
    }
    expect(toSecond[0]).not.toMatch(serverIds);
    for (const { body } of model.requests.slice(2)) {
      const text = JSON.stringify(body);
      for (const secret of ofSecond) expect(text).not.toContain(secret);
      for (const words of ["second looks.", "second is done."]) expect(text).toContain(words);
    }
    other.assertClean();
  });
});

test.each([
  ["responses", encrypt],
  ["messages", createSeal],
] as const)("thoughts are returned unchanged to the vendor of %s between calls", async (api, seal) => {
  await story({ files: { "a.txt": "one\n" }, initialize: false }, async ({ editor, model, home }) => {
    const config = { model: "first/m", provider: { first: vendor(api, model) } };
    await home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
    await editor.initialize();
    const { sessionId } = await editor.newSession();
    const thought = 'A thought with "quotes", {braces} and größe 👍.';
    model
      .reply(
        reply.think("A thought with ", '"quotes", {braces} and größe 👍.'),
        reply.call("read", { filePath: "a.txt" }),
      )
      .reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(JSON.stringify(model.requests[1]?.body)).toContain(seal(thought));
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    model.reply("Still here.");
    await editor.prompt(sessionId, "And now?");
    expect(JSON.stringify(model.requests[2]?.body)).toContain(seal(thought));
  });
});
