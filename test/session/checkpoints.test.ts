import { describe, expect, test } from "vitest";
import { type MessageId, newMessageId, newPartId, newSessionId } from "../../src/message/ids.ts";
import type { Message, UserInfo } from "../../src/message/message.ts";
import { netChanges } from "../../src/tasks/merged-changes.ts";
import type { FileChange, Part, ToolPart, ToolState } from "../../src/message/part.ts";
import {
  changesOf,
  fileSteps,
  hasName,
  interruptedEditsOf,
  nameOf,
  partlyTrackedCommandsOf,
  readCheckpoints,
} from "../../src/conversation/checkpoints.ts";
import { all, assistantInfo } from "../crash/support/stored-session.ts";

const sessionId = newSessionId();

function text(words: string, more: { ignored?: boolean; synthetic?: boolean } = {}): Part {
  return { id: newPartId(), type: "text", text: words, ...more };
}

function user(parts: Part[], more: Partial<UserInfo> = {}): Message {
  return {
    info: { id: newMessageId(), sessionId, role: "user", time: { created: 7 }, agent: "build", ...more },
    parts,
  };
}

function assistant(...parts: Part[]): Message {
  return { info: assistantInfo(sessionId), parts };
}

type Completed = Extract<ToolState, { status: "completed" }>;
type Failed = Extract<ToolState, { status: "error" }>;

function call(tool: string, state: ToolState, more: Partial<ToolPart> = {}): ToolPart {
  return { id: newPartId(), type: "tool", callId: "c", tool, ...more, state };
}

function completed(more: Partial<Completed> = {}): Completed {
  return { status: "completed", input: {}, output: "", time: { start: 1, end: 2 }, ...more };
}

function failed(reason: Failed["reason"], more: Partial<Failed> = {}): Failed {
  return { status: "error", input: {}, error: "", reason, ...more };
}

const change = (path: string, before: string | null, after: string | null): FileChange => ({
  path,
  operation: "update",
  before,
  after,
  additions: 1,
  deletions: 1,
});

async function* newestFirst(messages: readonly Message[]): AsyncGenerator<Message> {
  yield* messages.toReversed();
}

const ids = (messages: readonly Message[]): MessageId[] => messages.map(({ info }) => info.id);

describe("checkpoints", () => {
  test("are the user's messages, newest first, each with its results", async () => {
    const [first, second] = [user([text("First words")]), user([text("Second words")])];
    const [one, two, three] = [assistant(), assistant(), assistant()];
    const found = await all(readCheckpoints(newestFirst([first, one, two, second, three])));
    expect(found.map(({ id, created, words, messages }) => [id, created, words, ids(messages)])).toEqual([
      [second.info.id, 7, "Second words", ids([second, three])],
      [first.info.id, 7, "First words", ids([first, one, two])],
    ]);
  });

  test("do not start at steering messages, compactions or messages of the program", async () => {
    const messages = [
      user([text("Go")]),
      assistant(),
      user([text("Faster"), text("It came meanwhile", { synthetic: true })], { steering: true }),
      user([{ id: newPartId(), type: "compaction", auto: true }]),
      assistant(text("Summary")),
      user([text("Go on", { synthetic: true })]),
      assistant(),
    ];
    const found = await all(readCheckpoints(newestFirst(messages)));
    expect(found.map((checkpoint) => ids(checkpoint.messages))).toEqual([ids(messages)]);
  });

  test("omit commands that were answered, and include those that the model reads", async () => {
    const cost = [user([text("/cost", { ignored: true })]), assistant(text("$1", { ignored: true }))];
    const init = user([text("/init", { ignored: true }), text("Write AGENTS.md", { synthetic: true })]);
    const found = await all(readCheckpoints(newestFirst([...cost, init, assistant(text("Done")), ...cost])));
    expect(found.map(({ words, messages }) => [words, messages.length])).toEqual([["/init", 2]]);
  });

  test("are read only as far as requested", async () => {
    const messages = [user([text("One")]), user([text("Two")]), user([text("Three")])];
    const read: Message[] = [];
    async function* counted() {
      for (const message of messages.toReversed()) {
        read.push(message);
        yield message;
      }
    }
    for await (const { words } of readCheckpoints(counted())) if (words === "Two") break;
    expect(ids(read)).toEqual(ids(messages.slice(1).reverse()));
  });

  test("are named by the end of their id, or by the whole of it", () => {
    const id = newMessageId();
    const name = nameOf({ id });
    expect([name.length, hasName({ id }, name), hasName({ id }, id)]).toEqual([8, true, true]);
    expect([hasName({ id }, name.slice(1)), hasName({ id }, `${name}0`)]).toEqual([false, false]);
  });
});

describe("the changes of a turn", () => {
  test("are those of its calls, in the order in which they ran, including failed ones", () => {
    const late = call("edit", completed({ time: { start: 5, end: 6 }, changes: [change("/a", "1", "2")] }));
    const early = call(
      "write",
      completed({ time: { start: 3, end: 4 }, changes: [change("/a", null, "1")] }),
    );
    const broken = call("multiedit", failed("failed", { changes: [change("/b", "x", "y")] }));
    const messages = [assistant(late, early), assistant(broken)];
    expect(changesOf(messages).map(({ path, after }) => [path, after])).toEqual([
      ["/a", "1"],
      ["/a", "2"],
      ["/b", "y"],
    ]);
  });

  test("list a move as a deleted and an added file", () => {
    const moved: FileChange = { ...change("/new", "1", "2"), operation: "move", fromPath: "/old" };
    expect(fileSteps([moved])).toEqual([
      { path: "/old", before: "1", after: null },
      { path: "/new", before: null, after: "2" },
    ]);
  });

  test("name the commands whose changes are not all recorded", () => {
    const reasons = ["too large"];
    const partly = { metadata: { exitCode: 0, notUndone: reasons } };
    const messages = [
      assistant(
        call("bash", completed(), { title: "make" }),
        call("bash", completed(partly), { title: "build" }),
        call("bash", failed("cancelled", { time: { start: 1, end: 9 }, ...partly }), { title: "sleep" }),
        call("bash", failed("rejected", { time: { start: 3, end: 3 } }), { title: "rm" }),
        call("bash", failed("interrupted"), { title: "serve" }),
        call("read", completed(), { title: "a.txt" }),
      ),
    ];
    expect(partlyTrackedCommandsOf(messages)).toEqual([
      { command: "build", reasons },
      { command: "sleep", reasons },
      { command: "serve", reasons: ["the program ended while it ran, so its changes are unknown"] },
    ]);
  });

  test("name the edits that the end of the program interrupted", () => {
    const cut = failed("interrupted");
    const locations = [{ path: "/a" }];
    const messages = [
      assistant(
        call("edit", cut, { kind: "edit", locations }),
        call("read", cut, { kind: "read", locations }),
      ),
    ];
    expect(interruptedEditsOf(messages)).toEqual(["/a"]);
  });
});

const taskChange = (before: string | null, after: string | null): FileChange => ({
  path: "/a",
  operation: before === null ? "add" : after === null ? "delete" : "update",
  before,
  after,
  additions: 1,
  deletions: 1,
});

const pairs = (...changes: FileChange[]) => netChanges(changes).map(({ before, after }) => [before, after]);

describe("the changes", () => {
  test("of a task are merged per file", () => {
    expect(pairs(taskChange("1", "2"), taskChange("2", "3"))).toEqual([["1", "3"]]);
    expect(pairs(taskChange(null, "1"), taskChange("1", null))).toEqual([]);
  });

  test("of a task are not merged across a user's edit between them", () => {
    expect(pairs(taskChange("1", "2"), taskChange("user's", "3"), taskChange("3", "4"))).toEqual([
      ["1", "2"],
      ["user's", "4"],
    ]);
  });
});
