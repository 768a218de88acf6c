import { zedLike } from "../support/editor/clients.ts";
import { everything, waitForEverything } from "../support/mcp/mcp.ts";
import type { ModelRequest } from "../support/model/model-server.ts";
import { createPng } from "../support/png.ts";
import * as reply from "../support/model/reply.ts";
import { isSummaryRequest } from "../support/model/small-window.ts";
import type { StoryContext, StoryOptions } from "../support/editor/story.ts";

/** A model of each prompt family. */
export const families = {
  claude: "claude-sonnet-4-5",
  gpt: "gpt-5.1",
  codex: "gpt-5.1-codex",
  gemini: "gemini-2.5-pro",
  open: "glm-4.7",
  small: "qwen3:8b",
} as const;

export type Family = keyof typeof families;

interface Scene {
  readonly options?: Omit<StoryOptions, "models" | "initialize" | "client">;
  /** Plays the scene and returns its request. */
  play(context: StoryContext, sessionId: string): Promise<ModelRequest | undefined>;
}

const files = { "a.txt": "one\n" };
const read = reply.call("read", { filePath: "a.txt" });
const pixel = createPng(1, 1).toString("base64");

const skill = (name: string, description: string) =>
  `---\nname: ${name}\ndescription: ${description}\n---\nDo it.\n`;

const projectInstructions = `# Shop

- Run \`npm test\` before you finish.
- Prices are integers in cents; never use floats for money.
`;

/** A situation with one request to the model. */
export const scenes = {
  first: {
    async play({ editor, model }, sessionId) {
      model.reply("Hello.");
      await editor.prompt(sessionId, "What does a.txt say?");
      return model.requests[0];
    },
  },
  "tool-step": {
    async play({ editor, model }, sessionId) {
      model.reply(reply.think("a.txt, then."), reply.say("I look."), read).reply("It says one.");
      await editor.prompt(sessionId, "What does a.txt say?");
      return model.requests[1];
    },
  },
  plan: {
    async play({ editor, model }, sessionId) {
      await editor.setMode(sessionId, "plan");
      model.reply("The plan.");
      await editor.prompt(sessionId, "Plan a change of a.txt.");
      return model.requests[0];
    },
  },
  "build-after-plan": {
    async play({ editor, model }, sessionId) {
      await editor.setMode(sessionId, "plan");
      model.reply("The plan.").reply("Built.");
      await editor.prompt(sessionId, "Plan a change of a.txt.");
      await editor.setMode(sessionId, "build");
      await editor.prompt(sessionId, "Do it.");
      return model.requests[1];
    },
  },
  "last-step": {
    options: { config: { agent: { build: { steps: 2 } } } },
    async play({ editor, model }, sessionId) {
      model.reply(read).reply("So far.");
      await editor.prompt(sessionId, "What does a.txt say?");
      return model.requests[1];
    },
  },
  compaction: {
    async play(context, sessionId) {
      const requests = await compact(context, sessionId);
      return requests.find(isSummaryRequest);
    },
  },
  "after-compaction": {
    async play(context, sessionId) {
      const requests = await compact(context, sessionId);
      return requests.at(-1);
    },
  },
  explore: { play: (context, sessionId) => delegate(context, sessionId, "explore") },
  general: { play: (context, sessionId) => delegate(context, sessionId, "general") },
  title: {
    async play({ editor, model }, sessionId) {
      model.reply("Hello.");
      await editor.prompt(sessionId, "What does a.txt say?");
      return model.titleRequest(1);
    },
  },
  "project-instructions": {
    options: {
      files: {
        ...files,
        "AGENTS.md": projectInstructions,
        ".agents/skills/release/SKILL.md": skill("release", "How we release a version."),
        ".agents/skills/style/SKILL.md": skill("style", "How we write code and texts."),
      },
    },
    async play({ editor, model }, sessionId) {
      model.reply("Hello.");
      await editor.prompt(sessionId, "What does a.txt say?");
      return model.requests[0];
    },
  },
  mcp: {
    options: { config: { mcp: { everything: everything() } } },
    async play({ editor, model }, sessionId) {
      await waitForEverything(editor, sessionId);
      model.reply("Hello.");
      await editor.prompt(sessionId, "What does a.txt say?");
      return model.requests[0];
    },
  },
  image: {
    async play({ editor, model }, sessionId) {
      model.reply("A pixel.");
      await editor.prompt(sessionId, [
        { type: "text", text: "What is it?" },
        { type: "image", mimeType: "image/png", data: pixel },
      ]);
      return model.requests[0];
    },
  },
} satisfies Readonly<Record<string, Scene>>;

export type SceneName = keyof typeof scenes;

/** Returns how to start the scene's story with a model of the family. */
export function getStoryOptions(family: Family, { options }: Scene): StoryOptions {
  const name = families[family];
  const entry = {
    limit: { context: 200_000, output: 8_000 },
    attachment: true,
    tool_call: true,
    reasoning: true,
  };
  return {
    files,
    permission: "allow_once",
    ...options,
    client: zedLike(),
    models: { [name]: entry },
    config: { ...options?.config, model: `test/${name}` },
  };
}

/** Works, compacts the conversation and continues. */
async function compact({ editor, model }: StoryContext, sessionId: string): Promise<readonly ModelRequest[]> {
  model.when(isSummaryRequest, "## Goal\n\nFind out what a.txt says.\n\n## Done\n\nIt says one.");
  model.reply(read).reply("It says one.").reply("Two lines would be better.");
  await editor.prompt(sessionId, "What does a.txt say?");
  await editor.prompt(sessionId, "/compact");
  await editor.prompt(sessionId, "What would be better?");
  return model.requests;
}

/** Returns the subagent's first request. */
async function delegate({ editor, model }: StoryContext, sessionId: string, agent: string) {
  const brief = "Find out what a.txt says and report its first line.";
  const isOfAgent = (request: ModelRequest) => request.userText.startsWith(brief);
  model.when(isOfAgent, "It says one.");
  model.reply(reply.call("task", { description: "Read a.txt", prompt: brief, subagent_type: agent }));
  model.reply("It says one.");
  await editor.prompt(sessionId, "Let an agent look at a.txt.");
  return model.requests.find(isOfAgent);
}
