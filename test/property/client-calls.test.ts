import { tmpdir } from "node:os";
import { setImmediate as turnOfEvents } from "node:timers/promises";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { describe, expect, test } from "vitest";
import { plain, zedLike, type ClientKind } from "../support/editor/clients.ts";
import { Dice } from "../support/dice.ts";
import { type DraftStoryContext, draftStoriesOfOneAgent } from "../support/editor/draft-editor.ts";
import type { Editor } from "../support/editor/editor.ts";
import { toObject } from "../support/json.ts";
import type { Reply } from "../support/model/model-server.ts";
import * as reply from "../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../support/editor/story.ts";
import { isLong } from "../support/run-length.ts";

const story = storiesOfOneAgent();
const draftStory = draftStoriesOfOneAgent();

/** Number of calls in one story; many run at once. */
const callsOfStory = 60;
/** Number of sessions that one story uses at a time. */
const mostSessions = 4;
const expectedCodes: ReadonlySet<unknown> = new Set([-32002, -32800]);

/** Answers of the model; everything that they start ends without a cancel. */
function anyReply(dice: Dice): Reply[] {
  const { say, think, call } = reply;
  return dice.oneOf<() => Reply[]>([
    () => [...say("One. ", "Two. ", "Three.")],
    () => [...think("Hm."), ...say("Yes.")],
    () => [call("bash", { command: `echo ${dice.below(9)}; sleep 0.0${dice.below(9)}` })],
    () => [call("bash", { command: "sleep 30" })],
    () => [call("read", { filePath: "a.txt" }), call("read", { filePath: "missing.txt" })],
    () => [call("edit", { filePath: "a.txt", oldString: "hello", newString: "hello" })],
    () => [call("write", { filePath: `${dice.below(3)}.txt`, content: "text\n" })],
    () => [call("todowrite", { todos: [{ id: "1", content: "x", status: "pending", priority: "low" }] })],
    () => [call("no_such_tool", {})],
  ])();
}

/** Actions of a client, in the format of its protocol version. */
interface Side {
  create(): Promise<string>;
  fork(sessionId: string): Promise<string>;
  cancel(sessionId: string): Promise<unknown>;
  list(): Promise<unknown>;
  /** All other requests about a session; sent when called. */
  calls(sessionId: string): readonly (() => Promise<unknown>)[];
}

function stableSide({ editor, repository }: StoryContext, dice: Dice): Side {
  const folder = { cwd: repository.path, mcpServers: [] };
  const steering = [{ type: "text", text: "Also" }];
  return {
    create: async () => (await editor.newSession()).sessionId,
    fork: async (sessionId) =>
      String(toObject(await editor.request("session/fork", { sessionId, ...folder })).sessionId),
    cancel: (sessionId) => editor.cancel(sessionId),
    list: () => editor.request("session/list", { cwd: repository.path }),
    calls: (sessionId) => [
      () => editor.load(sessionId),
      () => editor.load(sessionId, { additionalDirectories: dice.oneOf([[], [tmpdir()]]) }),
      () => editor.resume(sessionId),
      () => editor.closeSession(sessionId),
      () => editor.delete(sessionId),
      () => editor.prompt(sessionId, "Work"),
      () => editor.prompt(sessionId, "Work on"),
      () => editor.prompt(sessionId, dice.oneOf(["/checkpoints", "/undo", "/redo", "/compact"])),
      () => editor.setMode(sessionId, dice.oneOf(["plan", "build"])),
      () => editor.setConfigOption(sessionId, "approval", dice.oneOf(["auto", "ask"])),
      () => editor.request("session/set_title", { sessionId, title: "A name" }),
      () => editor.request("_session/steering", { sessionId, prompt: steering }),
    ],
  };
}

function draftSide({ editor, repository }: DraftStoryContext, dice: Dice): Side {
  const cwd = repository.path;
  const text = (words: string) => [{ type: "text", text: words }];
  const runningCall = (sessionId: string) =>
    editor.updates(sessionId).findLast((update) => update.sessionUpdate === "tool_call_update")?.toolCallId;
  return {
    create: async () => String((await editor.request("session/new", { cwd })).sessionId),
    fork: async (sessionId) => String((await editor.request("session/fork", { sessionId, cwd })).sessionId),
    cancel: (sessionId) => editor.notify("session/cancel", { sessionId }),
    list: () => editor.request("session/list", { cwd }),
    calls: (sessionId) => [
      () => editor.request("session/resume", { sessionId, cwd, replayFrom: { type: "start" } }),
      () => editor.request("session/resume", { sessionId, cwd }),
      () => editor.request("session/close", { sessionId }),
      () => editor.request("session/delete", { sessionId }),
      () => editor.request("session/prompt", { sessionId, prompt: text("Work") }),
      () => editor.request("session/prompt", { sessionId, prompt: text("Work on") }),
      () => editor.request("session/prompt", { sessionId, prompt: text("/checkpoints") }),
      () =>
        editor.request("session/set_config_option", {
          sessionId,
          configId: "mode",
          type: "id",
          value: dice.oneOf(["plan", "build"]),
        }),
      () => editor.request("session/set_title", { sessionId, title: "A name" }),
      () => editor.request("session/status", { sessionId }),
      () => editor.request("_session/steering", { sessionId, prompt: text("Also") }),
      () => editor.request("tool_call/cancel", { sessionId, toolCallId: runningCall(sessionId) ?? "none" }),
    ],
  };
}

/** Requests of one client, sent without waiting for responses. */
class Thrower {
  readonly #side: Side;
  readonly #dice: Dice;
  readonly #sessions: string[] = [];
  readonly #known = new Set<string>();
  readonly #open = new Set<Promise<void>>();
  readonly #unexpected: string[] = [];

  constructor(side: Side, dice: Dice) {
    this.#side = side;
    this.#dice = dice;
  }

  async play(): Promise<void> {
    this.#keep(await this.#side.create());
    for (let count = 0; count < callsOfStory; count++) {
      this.#track(this.#throw());
      await this.#pause();
    }
    await this.#end();
    expect(this.#unexpected).toEqual([]);
  }

  /** Forks and new sessions in progress come first, so that all ids are known. */
  async #end(): Promise<void> {
    await this.#side.list();
    for (const sessionId of this.#known) this.#track(this.#side.cancel(sessionId));
    await Promise.all(this.#open);
  }

  async #pause(): Promise<void> {
    const how = this.#dice.below(10);
    if (how < 5) return;
    if (how < 9) await turnOfEvents();
    else await this.#side.list();
  }

  #throw(): Promise<unknown> {
    const [first = ""] = this.#sessions;
    const sessionId = this.#dice.oneOf([first, ...this.#sessions]);
    return this.#dice.oneOf([
      () => this.#side.create().then((id) => this.#keep(id)),
      () => this.#side.fork(sessionId).then((id) => this.#keep(id)),
      () => this.#side.cancel(sessionId),
      () => this.#side.cancel(sessionId),
      () => this.#side.list(),
      ...this.#side.calls(sessionId),
    ])();
  }

  /** Newer sessions replace older ones, which continue. */
  #keep(sessionId: string): void {
    this.#known.add(sessionId);
    if (this.#sessions.length < mostSessions) this.#sessions.push(sessionId);
    else this.#sessions[this.#dice.below(mostSessions)] = sessionId;
  }

  #track(answer: Promise<unknown>): void {
    const settled = answer.then(
      () => {},
      (error: unknown) => {
        if (!isExpected(error)) this.#unexpected.push(String(error));
      },
    );
    this.#open.add(settled);
    void settled.then(() => this.#open.delete(settled));
  }
}

/**
 * Expected errors: the session is gone or is being reopened, the request was cancelled, there was no call to
 * cancel, or no text for a summary.
 */
function isExpected(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  return (
    expectedCodes.has(error.code) ||
    /No cancellable call ".*" found|returned an empty summary|being reopened/.test(error.message)
  );
}

/** The stored data of each session can be read again. */
async function expectLoadable(editor: Editor): Promise<void> {
  const { sessions } = await editor.list();
  for (const { sessionId } of sessions) {
    await editor.load(sessionId);
    await editor.closeSession(sessionId);
    await editor.closeSession(sessionId);
  }
}

describe("calls of a client in any order, many at once", () => {
  const seeds = Array.from({ length: isLong ? 40 : 4 }, (_, index) => index + 1);
  const kinds: [ClientKind, ClientKind] = [plain(), zedLike()];
  const files = { "a.txt": "hello\n" };
  const answers = ["allow_once", "reject_once", "never"] as const;

  test.each(seeds)(
    "obey all rules of the wire, all get responses, and sessions still load (seed %i)",
    async (seed) => {
      const dice = new Dice(seed);
      const client = kinds[seed % 2] ?? plain();
      await story({ client, files, permission: () => dice.oneOf(answers) }, async (context) => {
        context.model.otherwise(() => anyReply(dice));
        await new Thrower(stableSide(context, dice), dice).play();
        await expectLoadable(context.editor);
      });
    },
  );

  test.each(seeds)("do the same in version 2 (seed %i)", async (seed) => {
    const dice = new Dice(seed);
    const permission = ({ options }: RequestPermissionRequest) => {
      const kind = dice.oneOf(answers);
      const option = options.find((one) => one.kind === kind);
      if (option === undefined) return "never" as const;
      return { outcome: "selected" as const, optionId: option.optionId };
    };
    await draftStory({ files, permission }, async (context) => {
      context.model.otherwise(() => anyReply(dice));
      await new Thrower(draftSide(context, dice), dice).play();
    });
  });
});
