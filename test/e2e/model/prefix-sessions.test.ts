import { appendFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Dice } from "../../support/dice.ts";
import { faulty } from "../../support/mcp/mcp.ts";
import type { ModelRequest, Reply } from "../../support/model/model-server.ts";
import { withMovingClock } from "../../support/program/moving-clock-program.ts";
import { createPng } from "../../support/png.ts";
import * as reply from "../../support/model/reply.ts";
import { isLong } from "../../support/run-length.ts";
import { isSummaryRequest } from "../../support/model/small-window.ts";
import { story, type StoryContext } from "../../support/editor/story.ts";

/** Number of generated sessions in one run, and of scenes in each. */
const sessionCount = isLong ? 24 : 8;
const scenesOfSession = 14;
const minuteMs = 60_000;

const line = (at: number) => `export const value${at} = compute(${at * 7_919}, "a line of a file");`;
const files = {
  "a.txt": "one\ntwo\n",
  "b.txt": "three\n",
  "AGENTS.md": "Rule 0.\n",
  "big.ts": Array.from({ length: 600 }, (_, at) => line(at)).join("\n"),
};
const skill = "---\nname: counting\ndescription: How to count.\n---\nCount in dozens.\n";

/** The changes that a scene permits in one request. */
interface Change {
  /** The number of the previous request; undefined if this is the scene's first request. */
  readonly after?: number;
  /** System text and tools. */
  readonly head?: boolean;
  /** Earlier messages. */
  readonly messages?: boolean;
  /** The newest earlier messages may be missing. */
  readonly undo?: boolean;
}

/** A generated session: its history, and its possible continuations. */
class Play {
  readonly story: StoryContext;
  readonly dice: Dice;
  readonly sessionId: string;
  /** Answers of the model in the running turn; if there are none, it ends the turn. */
  readonly answers: Reply[] = [];
  model = 0;
  mode = "build";
  clockMs: number;

  constructor(context: StoryContext, dice: Dice, sessionId: string, clockMs: number) {
    this.story = context;
    this.dice = dice;
    this.sessionId = sessionId;
    this.clockMs = clockMs;
    context.model.otherwise(() => this.answers.shift() ?? "Done.");
  }

  async turn(text: string, ...answers: Reply[]): Promise<void> {
    this.answers.push(...answers);
    await this.story.editor.prompt(this.sessionId, text).catch(() => undefined);
    this.answers.length = 0;
  }

  async wait(minutes: number): Promise<void> {
    this.clockMs += minutes * minuteMs;
    await setClock(this.story, this.clockMs);
  }
}

const setClock = ({ home }: Pick<StoryContext, "home">, ms: number): Promise<void> =>
  writeFile(join(home.path, "clock"), String(ms));

const todo = (content: string) => ({ content, status: "pending", priority: "low" });

function anyCall(dice: Dice): reply.CallScript {
  const { callScript } = reply;
  return dice.oneOf<() => reply.CallScript>([
    () => callScript("read", { filePath: dice.oneOf(["a.txt", "b.txt", "missing.txt"]) }),
    () => callScript("read", { filePath: "big.ts" }),
    () => callScript("grep", { pattern: "value1" }),
    () => callScript("glob", { pattern: "*.txt" }),
    () => callScript("bash", { command: `echo ${dice.below(9)}; exit ${dice.below(2)}` }),
    () => callScript("write", { filePath: `new${dice.below(3)}.txt`, content: "text\n" }),
    () => callScript("todowrite", { todos: [todo(`step ${dice.below(9)}`)] }),
    () => callScript("skill", { name: "counting" }),
    () => callScript("webfetch", { url: "https://example.com/" }),
    () => callScript("own_echo", { text: "hello" }),
    () => callScript("no_such_tool", {}),
    () => callScript("edit", { file_path: "a.txt", oldString: "two", newString: "two" }),
    () => callScript("read", "{not json"),
  ])();
}

function anyStep(dice: Dice): Reply {
  const calls = Array.from({ length: 1 + dice.below(3) }, () => anyCall(dice));
  const thoughts = dice.below(2) === 0 ? [] : reply.think(`Thought ${dice.below(99)}.`);
  const words = dice.below(2) === 0 ? [] : reply.say("I look at it.");
  return [...thoughts, ...words, reply.together(...calls)];
}

const anySteps = (dice: Dice): Reply[] => Array.from({ length: 1 + dice.below(3) }, () => anyStep(dice));

const editInstructions = ({ story: { repository }, dice }: Play) =>
  repository.write({ "AGENTS.md": `Rule ${dice.below(999)}.\n` });

async function restart({ story: { editor }, sessionId }: Play): Promise<void> {
  await editor.restart();
  await editor.initialize();
  await editor.load(sessionId);
}

/** All scenes of a session. Each returns the changes that it permits. */
const scenes: Readonly<Record<string, (play: Play) => Promise<Change>>> = {
  "steps with calls": async (play) => {
    await play.turn("Work on it", ...anySteps(play.dice));
    return {};
  },
  "another mode": async (play) => {
    play.mode = play.mode === "build" ? "plan" : "build";
    await play.story.editor.setMode(play.sessionId, play.mode);
    await play.turn("And now", ...anySteps(play.dice));
    return {};
  },
  "plan tools": async (play) => {
    await play.turn("Plan it", reply.call("plan_enter", {}), anyStep(play.dice), reply.call("plan_exit", {}));
    return {};
  },
  "another approval mode": async (play) => {
    const mode = play.dice.oneOf(["ask", "accept-edits", "auto"]);
    await play.story.editor.setConfigOption(play.sessionId, "approval", mode);
    await play.turn("Work", ...anySteps(play.dice));
    return {};
  },
  "a rejected call": async (play) => {
    play.story.editor.permission = "reject_once";
    await play.turn("Run it", reply.call("bash", { command: "rm -f a.bak" }));
    play.story.editor.permission = "allow_once";
    return {};
  },
  "a skill": async (play) => {
    await play.turn("Count", reply.call("skill", { name: "counting" }));
    return {};
  },
  "a command of the user": async (play) => {
    await play.turn(play.dice.oneOf(["/cost", "/mcp", "/checkpoints", "/permissions"]));
    await play.turn("/greet you", ...anySteps(play.dice));
    return {};
  },
  "a pause": async (play) => {
    await play.wait(2);
    await play.turn("Go on", ...anySteps(play.dice));
    return {};
  },
  "a long pause": async (play) => {
    await play.wait(24 * 60);
    await play.turn("Good morning", ...anySteps(play.dice));
    return { head: true, messages: true };
  },
  "a long pause that clears old outputs": async (play) => {
    const show = (at: number) => reply.callScript("bash", { command: `echo ${at}; cat big.ts` });
    await play.turn("Show it", reply.together(...Array.from({ length: 6 }, (_, at) => show(at))));
    await play.turn("Fine", ...anySteps(play.dice));
    await editInstructions(play);
    await play.turn("Good night");
    const after = play.story.model.requests.length;
    await play.wait(24 * 60);
    await play.turn("Good morning", ...anySteps(play.dice));
    return { after, head: true, messages: true };
  },
  "edited instructions": async (play) => {
    await editInstructions(play);
    await play.turn("Go on", ...anySteps(play.dice));
    return {};
  },
  "instructions that are deleted and written again": async (play) => {
    await rm(join(play.story.repository.path, "AGENTS.md"), { force: true });
    await play.turn("Go on", ...anySteps(play.dice));
    await editInstructions(play);
    await play.turn("Go on", ...anySteps(play.dice));
    return {};
  },
  "a new skill": async (play) => {
    const name = `new-${play.dice.below(5)}`;
    const text = `---\nname: ${name}\ndescription: How to ${play.dice.below(99)}.\n---\nCount.\n`;
    await play.story.home.write({ [`.config/fairlead/skills/${name}/SKILL.md`]: text });
    await play.turn("Go on", ...anySteps(play.dice));
    return {};
  },
  "a restart with an edit": async (play) => {
    await editInstructions(play);
    await restart(play);
    await play.turn("Where were we?", ...anySteps(play.dice));
    return {};
  },
  "a restart with other instructions of a server": async (play) => {
    await appendFile(join(play.story.home.path, "server"), `says Rule ${play.dice.below(99)}.\n`);
    await restart(play);
    await play.turn("Where were we?", ...anySteps(play.dice));
    return {};
  },
  "an effort": async (play) => {
    await play.story.editor.setConfigOption(
      play.sessionId,
      "thought_level",
      play.dice.oneOf(["low", "high"]),
    );
    await play.turn("Think", ...anySteps(play.dice));
    return {};
  },
  "another model": async (play) => {
    play.model = 1 - play.model;
    await play.story.editor.setConfigOption(play.sessionId, "model", models[play.model] ?? "");
    await play.turn("Who are you?", ...anySteps(play.dice));
    return { head: true, messages: true };
  },
  "an undo": async (play) => {
    await play.turn("/undo");
    await play.turn("Try again", ...anySteps(play.dice));
    return { undo: true };
  },
  "an image": async (play) => {
    const data = createPng(4, 4).toString("base64");
    play.answers.push(...anySteps(play.dice));
    await play.story.editor.prompt(play.sessionId, [
      { type: "text", text: "Look" },
      { type: "image", data, mimeType: "image/png" },
    ]);
    play.answers.length = 0;
    return {};
  },
  "a compaction": async (play) => {
    await play.turn("/compact", "## Goal\n\nWork.");
    await play.turn("Go on", ...anySteps(play.dice));
    return { head: true, messages: true };
  },
  "a steering message": async (play) => {
    const { editor, repository } = play.story;
    const command = "until [ -e go ]; do sleep 0.02; done";
    const turn = play.turn("Wait", reply.call("bash", { command }), anyStep(play.dice));
    await play.story.model.request(play.story.model.requests.length + 1);
    const prompt = [{ type: "text", text: "Mind the tests" }];
    await editor.request("_session/steering", {
      sessionId: play.sessionId,
      prompt,
      _meta: { steering: {} },
    });
    await writeFile(join(repository.path, "go"), "");
    await turn;
    await rm(join(repository.path, "go"), { force: true });
    return {};
  },
  "two prompts at once": async (play) => {
    play.answers.push(...anySteps(play.dice));
    const { editor } = play.story;
    await Promise.allSettled([editor.prompt(play.sessionId, "One"), editor.prompt(play.sessionId, "Two")]);
    play.answers.length = 0;
    return {};
  },
  "a cancelled turn": async (play) => {
    const gate = reply.gate();
    const turn = play.turn("Talk", [...reply.say("I begin"), gate]);
    await gate.reached();
    await play.story.editor.cancel(play.sessionId);
    gate.release();
    await turn;
    return {};
  },
  "a failed request": async (play) => {
    await play.turn("Fail", reply.failure(404, "No such thing"));
    return {};
  },
  "a task": async (play) => {
    const task = { description: "Look", prompt: "Look at a.txt", subagent_type: "explore" };
    await play.turn("Delegate", reply.call("task", task), "Seen.");
    return {};
  },
  "a server that changes its tools": async (play) => {
    await play.turn("Call it", reply.call("own_echo", { text: "hello" }), ...anySteps(play.dice));
    await play.turn("Once more", ...anySteps(play.dice));
    return {};
  },
  "a restart": async (play) => {
    await restart(play);
    await play.turn("Where were we?", ...anySteps(play.dice));
    return {};
  },
};

const models = ["test/qwen-one", "test/qwen-two"];

async function playSession(seed: number): Promise<void> {
  const names = Object.keys(scenes);
  const dice = new Dice(seed);
  await story(
    { files, program: withMovingClock, initialize: false, permission: "allow_once" },
    async (context) => {
      const { editor, model, home } = context;
      const one = {
        limit: { context: 200_000, output: 8_000 },
        tool_call: true,
        reasoning: true,
        variants: { low: { reasoningEffort: "low" }, high: { reasoningEffort: "high" } },
        modalities: { input: ["text", "image"] },
      };
      const servers = seed % 2 === 0 ? "changing" : "dies-in-call";
      const config = {
        model: models[0],
        provider: {
          test: {
            options: { baseURL: model.url, apiKey: "test-key" },
            models: { "qwen-one": { name: "One", ...one }, "qwen-two": { name: "Two", ...one } },
          },
        },
        mcp: { own: faulty(servers, join(home.path, "server")) },
        permission: { webfetch: "deny", "own_*": "allow" },
        command: { greet: { template: "Greet $ARGUMENTS" } },
      };
      await home.write({
        ".config/fairlead/fairlead.json": JSON.stringify(config),
        ".config/fairlead/skills/counting/SKILL.md": skill,
        server: "says Rule 0.\n",
      });
      const clockMs = msToMidnight() - 3 * minuteMs;
      await setClock(context, clockMs);
      await editor.initialize();
      const { sessionId } = await editor.newSession();
      const play = new Play(context, dice, sessionId, clockMs);
      const prefixes = new Prefixes();
      const played: string[] = [];
      for (let number = 0; number < scenesOfSession; number++) {
        const name = names[dice.below(names.length)] ?? "";
        const from = model.requests.length;
        played.push(name);
        const allowed = await scenes[name]?.(play);
        prefixes.check(model.requests.slice(from), allowed ?? {}, `seed ${seed}: ${played.join(", ")}`);
      }
    },
  );
}

/** Milliseconds until the next local midnight. */
function msToMidnight(): number {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1).getTime() - now.getTime();
}

/** Requests of the conversation itself. */
function isOfConversation({ messages }: ModelRequest): boolean {
  return !messages.some(({ role, content }) => role === "user" && content === "Look at a.txt");
}

/** A request's messages as they were sent. */
const listMessages = ({ messages }: ModelRequest): string[] => messages.map((one) => JSON.stringify(one));

/** Maximum characters of a message in a failure. */
const excerptLength = 2_000;
const excerpt = (text = ""): string => text.slice(0, excerptLength);

/** A session whose MCP server changes its tools changes them once, when a turn begins. */
class Prefixes {
  /** Returns the newest request of the conversation that is not for a summary. */
  #last: ModelRequest | undefined;
  #toolChanges = 0;

  /** Checks the requests of a scene. */
  check(requests: readonly ModelRequest[], change: Change, scene: string): void {
    let allowed: Change | undefined = change;
    for (const request of requests.filter(isOfConversation)) {
      const before = this.#last;
      const where = `${scene}: request ${request.number}`;
      const isDue: boolean = request.number > (allowed?.after ?? 0);
      if (before !== undefined) this.#compare(before, request, (isDue && allowed) || {}, where);
      if (isSummaryRequest(request)) continue;
      this.#last = request;
      if (isDue) allowed = undefined;
    }
  }

  #compare(before: ModelRequest, request: ModelRequest, allowed: Change, where: string): void {
    const isSummary = isSummaryRequest(request);
    const hasOtherTools = JSON.stringify(request.body.tools) !== JSON.stringify(before.body.tools);
    if (hasOtherTools) {
      expect(request.messages.at(-1)?.role, `${where}: tools change within a turn`).toBe("user");
      if (allowed.head !== true) this.#toolChanges++;
      expect(this.#toolChanges, `${where}: tools change`).toBeLessThanOrEqual(1);
    }
    const [earlier, later] = [listMessages(before), listMessages(request)];
    const mayChangeHead = (allowed.head === true || hasOtherTools) && !isSummary;
    if (!mayChangeHead) expect(later[0], `${where}: system text`).toBe(earlier[0]);
    if (allowed.messages === true && !isSummary) return;
    const start = request.messages.findLastIndex(({ role }) => role === "user");
    const length = allowed.undo === true ? Math.min(start, earlier.length) : earlier.length;
    const from = mayChangeHead ? 1 : 0;
    const at = earlier.findIndex((text, index) => index >= from && index < length && text !== later[index]);
    if (at === -1) return;
    expect(excerpt(later[at]), `${where}, message ${at} of ${length}`).toBe(excerpt(earlier[at]));
    throw new Error(`${where}: message ${at} differs after its beginning`);
  }
}

describe("each request begins with the bytes of the previous one", () => {
  test.each(Array.from({ length: sessionCount }, (_, seed) => seed))(
    "in the generated session %i",
    (seed) => playSession(seed),
    120_000,
  );
});
