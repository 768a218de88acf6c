import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { waitForFile } from "../../support/file-watch.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const goOn = { experimental: { continue_loop_on_deny: true } };

/** A tool in OpenCode's format: with its helper, its schemas, TypeScript, and several tools in one file. */
const math = `
import { tool } from "@opencode-ai/plugin";
interface Pair { a: number; b: number }
const sum = ({ a, b }: Pair): string => String(a + b);
export const add = tool({
  description: "Adds two numbers.",
  args: { a: tool.schema.number().describe("The first"), b: tool.schema.number().default(1) },
  async execute(args, context) {
    context.metadata({ title: "A sum", metadata: { of: 2 } });
    return sum(args as Pair);
  },
});
export const where = tool({
  description: "Says where it runs.",
  args: {},
  async execute(_, { directory, agent, sessionID }) {
    return [directory, agent, sessionID, process.env.OPENAI_API_KEY ?? "no key"].join(" ");
  },
});
`;
const greet = `
import { z } from "zod";
export default {
  description: "Greets.",
  args: { name: z.string() },
  execute: async ({ name }) => ({ title: "Greeting", output: "Hello " + name, metadata: { kind: "warm" } }),
};
`;

describe("tools of the configuration's folders", () => {
  test("are named after files, called, asked for and shown like any other tool", async () => {
    const homeFiles = { ".config/opencode/tool/math.ts": math, ".config/fairlead/tools/greet.mjs": greet };
    const env = { OPENAI_API_KEY: "sk-secret-0123456789" };
    await story({ homeFiles, env, permission: "allow_always" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(
        reply.together(reply.callScript("math_add", { a: 2 }), reply.callScript("greet", { name: "Ada" })),
      );
      model.reply(reply.call("math_where", {}));
      model.reply(reply.call("math_add", { a: 40, b: 2 }));
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      const parameters = {
        type: "object",
        properties: { a: { type: "number", description: "The first" }, b: { type: "number", default: 1 } },
        required: ["a"],
      };
      const add = { name: "math_add", description: "Adds two numbers.", parameters };
      expect(model.requests[0]?.body.tools).toContainEqual({ type: "function", function: add });
      expect(model.requests[1]?.toolResults).toEqual(["3", "Hello Ada"]);
      expect(model.requests[2]?.toolResults.at(-1)).toBe(`${repository.path} build ${sessionId} no key`);
      expect(model.requests[3]?.toolResults.at(-1)).toBe("42");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        'math_add {"a":2}',
        'greet {"name":"Ada"}',
        "math_where {}",
      ]);
      expect(toolCalls(editor.updates(sessionId)).map(({ title, status }) => [title, status])).toEqual([
        ["A sum", "completed"],
        ["Greeting", "completed"],
        ["math_where {}", "completed"],
        ["A sum", "completed"],
      ]);
    });
  });

  test("follow rules for their names; agents that only read must ask or do not see them", async () => {
    const homeFiles = { ".config/fairlead/tools/greet.js": greet };
    const config = { ...goOn, permission: { greet: "allow" } };
    await story({ homeFiles, config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("greet", { name: "Ada" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[1]?.toolResults).toEqual(["Hello Ada"]);
      await editor.setMode(sessionId, "plan");
      model.reply(reply.call("greet", { name: "Eve" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(model.requests[3]?.toolResults.at(-1)).toContain("The user rejected");
    });
  });

  test("report wrong arguments, errors and invalid results as failed calls of the file", async () => {
    const broken = `
import { tool } from "fairlead/plugin";
const make = (execute) => tool({ description: "Fails.", args: { n: tool.schema.number() }, execute });
export const throws = make(() => { throw new Error("no luck"); });
export const causes = make(() => { throw new Error("no luck", { cause: new Error("no connection") }); });
export const nothing = make(() => {});
export const ends = make(() => process.exit(3));
export const fine = make(({ n }) => "x".repeat(n));
`;
    const files = { ".config/fairlead/tools/broken.js": broken, ".config/fairlead/tools/read.js": greet };
    const homeFiles = {
      ...files,
      ".config/fairlead/tools/typo.ts": "export default {{",
      ".config/fairlead/tools/needs.js": 'import "no-such-package";\n',
    };
    await story({ homeFiles, config: { permission: "allow" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("broken_throws", { n: "one" }));
      model.reply(reply.call("broken_throws", { n: 1 }));
      model.reply(reply.call("broken_causes", { n: 1 }));
      model.reply(reply.call("broken_nothing", { n: 1 }));
      model.reply(reply.call("broken_fine", { n: 60_000 }));
      model.reply(reply.call("broken_ends", { n: 1 }));
      model.reply("Done.");
      expect((await editor.prompt(sessionId, "Go")).stopReason).toBe("end_turn");
      const results = model.requests.slice(1).map(({ toolResults }) => toolResults.at(-1));
      expect(results[0]).toMatch(/^Invalid arguments[^]*- n: .*number/);
      expect(results[1]).toMatch(
        /^The tool broken_throws \(.*broken\.js\) failed: no luck\n\nFix the arguments/,
      );
      expect(results[2]).toMatch(/ failed: no luck: no connection\n\nFix the arguments/);
      expect(results[3]).toContain("it returned nothing instead of text");
      expect(results[4]).toMatch(/cut|left out|whole/);
      expect(results[5]).toMatch(/broken\.js\) failed: .*ended/);
      const thoughts = thoughtText(editor.updates(sessionId));
      expect(thoughts).toMatch(/typo\.ts was switched off: loading it /);
      expect(thoughts).toMatch(/needs\.js was switched off: loading it threw: Cannot find package/);
      expect(thoughts).toMatch(/The tool read of .*read\.js is ignored/);
      expect(thoughts).toMatch(/broken\.js was switched off: .*code 3/);
      model.reply("Done.");
      await editor.prompt(sessionId, "Again");
      expect(model.requests.at(-1)?.toolNames).not.toContain("broken_fine");
    });
  });

  test("of a project wait for consent, and are reloaded when they change", async () => {
    const files = { ".opencode/tool/greet.ts": greet };
    await story(
      { files, config: { permission: { greet: "allow" } }, permission: "allow_once" },
      async (storyContext) => {
        const { editor, model, repository } = storyContext;
        const { sessionId } = await editor.newSession();
        model.reply(reply.call("greet", { name: "Ada" })).reply("Done.");
        await editor.prompt(sessionId, "Go");
        expect(JSON.stringify(editor.permissionRequests[0]?.toolCall.content)).toContain(
          "load the module .opencode/tool/greet.ts",
        );
        await repository.write({ ".opencode/tool/greet.ts": greet.replace("Hello", "Bonjour") });
        model.reply(reply.call("greet", { name: "Ada" })).reply("Done.");
        await editor.prompt(sessionId, "Again");
        expect(model.requests.at(-1)?.toolResults).toEqual(["Bonjour Ada"]);
        expect(editor.permissionRequests).toHaveLength(2);
      },
    );
  });

  test("of a project may only import files that the consent covered", async () => {
    const file = (from: string) => `
import { word } from "${from}";
export default { description: "Says.", args: {}, execute: () => word };
`;
    const files = {
      ".fairlead/tools/good.ts": file("../lib/word"),
      ".fairlead/lib/word.ts": 'export const word: string = "good";\n',
      ".fairlead/tools/bad.ts": file("../../src/word.js"),
      "src/word.js": 'export const word = "bad";\n',
    };
    const config = { permission: { good: "allow", bad: "allow" } };
    await story({ files, config, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("good", {})).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests.at(-1)?.toolResults).toEqual(["good"]);
      expect(model.requests[0]?.toolNames).not.toContain("bad");
      expect(thoughtText(editor.updates(sessionId))).toMatch(/bad\.ts was switched off: .*may not be loaded/);
    });
  });

  test("end with the cancelled turn, even in a loop, and leave no processes", async () => {
    const slow = `
import { tool } from "@opencode-ai/plugin";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "node:child_process";
export const waits = tool({ description: "Waits.", args: {}, execute: (_, { abort, directory }) => new Promise((resolve) => {
  spawn("sleep", ["600"]);
  writeFileSync(join(directory, "began"), "");
  abort.addEventListener("abort", () => { writeFileSync(join(directory, "aborted"), ""); resolve("late"); });
}) });
export const loops = tool({ description: "Loops.", args: {}, execute(_, { directory }) { writeFileSync(join(directory, "looping"), ""); for (;;); } });
`;
    const homeFiles = { ".config/fairlead/tools/slow.ts": slow, ".config/fairlead/tools/greet.js": greet };
    await story({ homeFiles, config: { permission: "allow" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      for (const [tool, sign] of [
        ["slow_waits", "began"],
        ["slow_loops", "looping"],
      ] as const) {
        model.reply(reply.call(tool, {}));
        const turn = editor.prompt(sessionId, "Go");
        await waitForFile(join(repository.path, sign));
        await editor.cancel(sessionId);
        expect((await turn).stopReason).toBe("cancelled");
      }
      await waitForFile(join(repository.path, "aborted"));
      model.reply(reply.call("greet", { name: "Ada" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests.at(-1)?.toolResults.at(-1)).toBe("Hello Ada");
    });
  });
});
