import type { StoryContext } from "../support/editor/story.ts";
import { everything, waitForEverything } from "../support/mcp/mcp.ts";
import * as reply from "../support/model/reply.ts";
import { isSummaryRequest } from "../support/model/small-window.ts";
import type { Setting } from "./replay-session.ts";

/** A session that was recorded once and is replayed with each later version. */
interface Recording {
  readonly setting: Setting;
  play(context: StoryContext, sessionId: string): Promise<void>;
}

const files = {
  "src/cart.js": "export const total = (prices) => prices.reduce((a, b) => a + b);\n",
  "src/price.js": "export const price = (cents) => cents / 100;\n",
  "README.md": "# Shop\n",
};
const read = (filePath: string) => reply.call("read", { filePath });
const empty = { filePath: "src/cart.js", oldString: "a + b)", newString: "a + b, 0)" };

export const recordings: Readonly<Record<string, Recording>> = {
  edits: {
    setting: { files },
    async play({ editor, model }, sessionId) {
      model
        .reply(reply.say("I look."), read("src/cart.js"))
        .reply(reply.call("edit", empty))
        .reply(reply.call("write", { filePath: "test/cart.test.js", content: "// An empty cart costs 0.\n" }))
        .reply(reply.call("bash", { command: "cat src/cart.js test/cart.test.js" }))
        .reply("An empty cart costs 0 now.");
      await editor.prompt(sessionId, "total([]) throws. Fix it.");
      model.reply(reply.call("grep", { pattern: "cents" })).reply("In src/price.js.");
      await editor.prompt(sessionId, "Where are cents converted?");
    },
  },
  "near-right-calls": {
    setting: { files },
    async play({ editor, model }, sessionId) {
      model
        .reply(reply.call("functions.read", { file_path: "src/cart.js", limit: "10" }))
        .reply(reply.call("edit", { filePath: "src/cart.js", oldString: "not there at all", newString: "x" }))
        .reply(reply.call("read", '{"filePath": "src/price.js",}'))
        .reply(reply.call("fly", {}))
        .reply("I could not do it.");
      await editor.prompt(sessionId, "Try some calls.");
    },
  },
  refusals: {
    setting: {
      files: { ...files, "keys/a.txt": "secret\n" },
      config: { permission: { edit: "ask", read: { "keys/*": "deny" } } },
    },
    async play({ editor, model }, sessionId) {
      model
        .reply(
          reply.together(
            reply.callScript("read", { filePath: "keys/a.txt" }),
            reply.callScript("read", { filePath: "src/cart.js" }),
          ),
        )
        .reply(reply.call("edit", empty))
        .reply("It is edited.");
      editor.permission = "allow_once";
      await editor.prompt(sessionId, "Fix the cart with the key.");
      model.reply(reply.call("edit", { ...empty, oldString: "a + b, 0)", newString: "a + b, 1)" }));
      editor.permission = "reject_once";
      await editor.prompt(sessionId, "Begin with 1.");
    },
  },
  plan: {
    setting: { files },
    async play({ editor, model }, sessionId) {
      await editor.setMode(sessionId, "plan");
      model
        .reply(read("src/cart.js"))
        .reply(reply.call("edit", empty))
        .reply("1. Add an initial value in `src/cart.js:1`.");
      await editor.prompt(sessionId, "Plan the fix.");
      await editor.setMode(sessionId, "build");
      model.reply(reply.call("edit", empty)).reply("Done.");
      await editor.prompt(sessionId, "Carry it out.");
    },
  },
  tasks: {
    setting: { files },
    async play({ editor, model }, sessionId) {
      const brief = "Find out where cents are converted.";
      model.when(
        ({ userText }) => userText.startsWith(brief),
        ({ toolResults }) =>
          toolResults.length === 0 ? reply.call("grep", { pattern: "cents" }) : "src/price.js:1",
      );
      const todos = [
        { content: "Find the place", status: "completed", priority: "high" },
        { content: "Document it", status: "pending", priority: "low" },
      ];
      model
        .reply(reply.call("task", { description: "Find cents", prompt: brief, subagent_type: "explore" }))
        .reply(reply.call("todowrite", { todos }))
        .reply("In src/price.js.");
      await editor.prompt(sessionId, "Let an agent find where cents are converted.");
    },
  },
  compaction: {
    setting: { files },
    async play({ editor, model }, sessionId) {
      model.when(isSummaryRequest, "## Goal\n\nFix the cart.\n\n## Done\n\nsrc/cart.js was read.");
      model.reply(read("src/cart.js")).reply("It has no initial value.");
      await editor.prompt(sessionId, "What is wrong with the cart?");
      await editor.prompt(sessionId, "/compact");
      model.reply(reply.call("edit", empty)).reply("Fixed.");
      await editor.prompt(sessionId, "Fix it.");
    },
  },
  mcp: {
    setting: {
      files,
      config: { mcp: { everything: everything() } },
      ready: waitForEverything,
    },
    async play({ editor, model }, sessionId) {
      model
        .reply(reply.call("everything_echo", { message: "hello" }))
        .reply(reply.call("everything_get-sum", { a: 2 }))
        .reply("The server says hello.");
      await editor.prompt(sessionId, "Ask the server.");
    },
  },
  "reasoning-and-failure": {
    setting: { files },
    async play({ editor, model }, sessionId) {
      model
        .reply(reply.think("The cart first."), reply.say("I look."), read("src/cart.js"))
        .reply(reply.think("It is short."), reply.say("It adds prices."));
      await editor.prompt(sessionId, "What does the cart do?");
      model
        .reply(read("src/price.js"))
        .reply(reply.failure(400, "Invalid value: this request is not accepted."));
      await editor.prompt(sessionId, "And the price?").catch(() => "The turn fails as scripted.");
      model.reply("It divides by 100.");
      await editor.prompt(sessionId, "Once more.");
    },
  },
};
