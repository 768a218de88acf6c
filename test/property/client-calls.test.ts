import { setImmediate as turnOfEvents } from "node:timers/promises";
import { RequestError } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { plain, zedLike, type ClientKind } from "../support/clients.ts";
import type { Editor } from "../support/editor.ts";
import { objectOf } from "../support/json.ts";
import type { ModelServer, Reply } from "../support/model-server.ts";
import * as reply from "../support/reply.ts";
import { type Stage, storiesOfOneAgent } from "../support/story.ts";
import { tries } from "../support/run-length.ts";

const story = storiesOfOneAgent();

/** Calls of one story; many are under way at once. */
const callsOfStory = 60;
/** Sessions that one story plays with at a time. */
const mostSessions = 4;
/** What may go wrong: the session is gone, or the request was cancelled. */
const expectedCodes: ReadonlySet<unknown> = new Set([-32002, -32800]);

/** Numbers that are the same for the same seed (mulberry32). */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  oneOf<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }
}

/** What a model may say; everything that it begins comes to an end by itself. */
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

/** One client's calls, thrown at the agent without waiting for their answers. */
class Thrower {
  readonly #stage: Stage;
  readonly #dice: Dice;
  readonly #sessions: string[] = [];
  readonly #known = new Set<string>();
  readonly #open = new Set<Promise<void>>();
  readonly #unexpected: string[] = [];

  constructor(stage: Stage, dice: Dice) {
    this.#stage = stage;
    this.#dice = dice;
  }

  async play(): Promise<void> {
    await this.#create();
    for (let count = 0; count < callsOfStory; count++) {
      this.#throw();
      await this.#pause();
    }
    await this.#end();
    expect(this.#unexpected).toEqual([]);
  }

  /** Forks and new sessions that are under way come first, so that all are known. */
  async #end(): Promise<void> {
    await this.#stage.editor.request("session/list", {});
    for (const sessionId of this.#known) this.#track("end", this.#stage.editor.cancel(sessionId));
    await Promise.all(this.#open);
  }

  async #pause(): Promise<void> {
    const how = this.#dice.below(10);
    if (how < 5) return;
    if (how < 9) await turnOfEvents();
    else await this.#stage.editor.request("session/list", {});
  }

  #throw(): void {
    const { editor, repository } = this.#stage;
    const dice = this.#dice;
    const [first = ""] = this.#sessions;
    const sessionId = dice.oneOf([first, ...this.#sessions]);
    const place = { sessionId, cwd: repository.path, mcpServers: [] };
    const [name, answer] = dice.oneOf<() => [string, Promise<unknown>]>([
      () => ["new", this.#create()],
      () => ["load", editor.load(sessionId)],
      () => ["load", editor.load(sessionId)],
      () => ["resume", editor.resume(sessionId)],
      () => ["close", editor.closeSession(sessionId)],
      () => ["delete", editor.delete(sessionId)],
      () => ["prompt", editor.prompt(sessionId, "Work")],
      () => ["prompt", editor.prompt(sessionId, "Work on")],
      () => ["prompt", editor.prompt(sessionId, "/checkpoints")],
      () => ["cancel", editor.cancel(sessionId)],
      () => ["cancel", editor.cancel(sessionId)],
      () => ["mode", editor.setMode(sessionId, dice.oneOf(["plan", "build"]))],
      () => ["option", editor.setConfigOption(sessionId, "approval", dice.oneOf(["auto", "ask"]))],
      () => ["fork", this.#fork(place)],
      () => ["title", editor.request("session/set_title", { sessionId, title: "A name" })],
      () => [
        "steer",
        editor.request("_session/steering", { sessionId, prompt: [{ type: "text", text: "Also" }] }),
      ],
      () => ["list", editor.request("session/list", { cwd: repository.path })],
    ])();
    this.#track(`${name} ${this.#sessions.indexOf(sessionId)}`, answer);
  }

  /** Newer sessions take the place of older ones, which go on. */
  #keep(sessionId: string): void {
    this.#known.add(sessionId);
    if (this.#sessions.length < mostSessions) this.#sessions.push(sessionId);
    else this.#sessions[this.#dice.below(mostSessions)] = sessionId;
  }

  async #create(): Promise<void> {
    this.#keep((await this.#stage.editor.newSession()).sessionId);
  }

  async #fork(params: { sessionId: string; cwd: string; mcpServers: never[] }): Promise<void> {
    this.#keep(String(objectOf(await this.#stage.editor.request("session/fork", params)).sessionId));
  }

  #track(name: string, answer: Promise<unknown>): void {
    const settled = answer.then(
      () => {},
      (error: unknown) => {
        if (!(error instanceof RequestError) || !expectedCodes.has(error.code))
          this.#unexpected.push(`${name}: ${String(error)}`);
      },
    );
    this.#open.add(settled);
    void settled.then(() => this.#open.delete(settled));
  }
}

/** What was kept of every session can be read again. */
async function expectLoadable(editor: Editor): Promise<void> {
  const { sessions } = await editor.list();
  for (const { sessionId } of sessions) {
    await editor.load(sessionId);
    await editor.closeSession(sessionId);
    await editor.closeSession(sessionId);
  }
}

function scriptModel(model: ModelServer, dice: Dice): void {
  model.otherwise(() => anyReply(dice));
}

describe("calls of a client in any order, many at once", () => {
  const count = tries(60);
  const kinds: [ClientKind, ClientKind] = [plain(), zedLike()];

  test.each(Array.from({ length: count }, (_, index) => index + 1))(
    "leave every rule of the wire whole, are all answered, and leave sessions that load (seed %i)",
    async (seed) => {
      const dice = new Dice(seed);
      const client = kinds[seed % 2] ?? plain();
      const permission = () =>
        dice.oneOf<"allow_once" | "reject_once" | "never">(["allow_once", "reject_once", "never"]);
      const options = { client, permission, files: { "a.txt": "hello\n" } };
      await story(options, async (stage) => {
        scriptModel(stage.model, dice);
        await new Thrower(stage, dice).play();
        await expectLoadable(stage.editor);
      });
    },
  );
});
