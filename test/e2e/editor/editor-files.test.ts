import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RequestError } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { toSlashes } from "../../../src/base/files/paths.ts";
import { plain, withFs, zedLike, type ClientKind } from "../../support/editor/clients.ts";
import { toObject, toText } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { playCalls, type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const config = { permission: { edit: "allow", bash: "allow" } };
const files = { "a.txt": "one\ntwo\n" };

/** The agent's calls of the client's file methods, as `method path`. */
const fileRequests = ({ editor, repository }: StoryContext): string[] =>
  editor.wire.entries.flatMap(({ direction, message }) => {
    if (direction !== "fromAgent" || message?.kind !== "request") return [];
    const path = toText(toObject(message.json["params"]).path);
    return message.method.startsWith("fs/")
      ? [`${message.method} ${toSlashes(path?.replace(repository.path, "") ?? "")}`]
      : [];
  });

const onDisk = ({ repository }: StoryContext, name = "a.txt") =>
  readFile(join(repository.path, name), "utf8");

const read = reply.call("read", { filePath: "a.txt" });
const edit = (oldString: string, newString: string) =>
  reply.call("edit", { filePath: "a.txt", oldString, newString });

/** Sets the text of an unsaved buffer before the editor is asked for it. */
const buffer = (client: ClientKind, { repository }: StoryContext, text: string) =>
  client.buffers?.set(join(repository.path, "a.txt"), text);

test("uses the link through which a folder was opened in reads, writes and cards", async () => {
  await using place = await temporaryFolder();
  const client = withFs();
  const asking = { permission: { edit: "ask" } };
  await story({ client, files, config: asking }, async (context) => {
    const { editor, model, repository } = context;
    const link = join(place.path, "link");
    await symlink(repository.path, link, "junction");
    const file = join(link, "a.txt");
    client.buffers?.set(file, "one\ntwo\nunsaved\n");
    const { sessionId } = await editor.newSession({ cwd: link });
    editor.permission = "allow_once";
    model.reply(read).reply(edit("unsaved", "saved")).reply("Done.");
    await editor.prompt(sessionId, "Go on");
    expect(client.buffers?.get(file)).toBe("one\ntwo\nsaved\n");
    expect(await onDisk(context)).toBe("one\ntwo\nsaved\n");

    const { toolCall } = await editor.permissionRequest(1);
    expect(toolCall).toMatchObject({ locations: [{ path: file }], content: [{ path: file }, {}] });
    const shown = toolCalls(editor.updates(sessionId));
    expect(shown).toMatchObject([
      { kind: "read", locations: [{ path: file }] },
      { kind: "edit", locations: [{ path: file }], content: [{ type: "diff", path: file }] },
    ]);
    await rm(link);
    await symlink(place.path, link, "junction");
    model.reply(read).reply("Done.");
    await editor.prompt(sessionId, "Again");
    expect(fileRequests(context).at(-1)).toBe("fs/read_text_file /a.txt");
    await rm(link);
    await symlink(repository.path, link, "junction");

    const before = editor.updates(sessionId).length;
    await editor.load(sessionId, { cwd: link });
    expect(toolCalls(editor.updates(sessionId).slice(before))).toMatchObject([
      { locations: [{ path: file }] },
      { locations: [{ path: file }], content: [{ path: file }] },
      { locations: [{ path: file }] },
    ]);
  });
});

describe.each([
  ["with files", withFs],
  ["like Zed", zedLike],
] as const)("an editor %s", (_, kind) => {
  test("supplies its unsaved text to read and edit, and receives the edit", async () => {
    const client = kind();
    await story({ client, files, config }, async (context) => {
      buffer(client, context, "one\ntwo\nunsaved\n");
      const [seen, edited, again] = await playCalls(context, read, edit("unsaved", "saved"), read);
      expect(seen).toContain("3: unsaved");
      expect(edited).toContain("Changed a.txt (+1 -1 lines)");
      expect(again).toContain("3: saved");
      expect(await onDisk(context)).toBe("one\ntwo\nsaved\n");
      expect(client.buffers?.get(join(context.repository.path, "a.txt"))).toBe("one\ntwo\nsaved\n");
      expect(fileRequests(context)).toContain("fs/write_text_file /a.txt");
      const [, call] = toolCalls(context.editor.updates(context.editor.wire.updates[0]?.sessionId ?? ""));
      expect(call?.content).toMatchObject([
        { type: "diff", oldText: "one\ntwo\nunsaved\n", newText: "one\ntwo\nsaved\n" },
      ]);
    });
  });

  test("is not asked for files outside the workspace or in other encodings", async () => {
    const other = Buffer.from("\uFEFFone\n", "utf16le");
    const client = kind();
    const options = { client, files: { "utf16.txt": other }, config: { permission: "allow" } };
    await story(options, async (context) => {
      await playCalls(
        context,
        reply.call("read", { filePath: "utf16.txt" }),
        reply.call("read", { filePath: join(context.home.path, ".config/fairlead/fairlead.json") }),
      );
      expect(fileRequests(context)).toEqual([]);
    });
  });

  test("receives new files, so that its review shows them", async () => {
    const client = kind();
    await story({ client, files, config }, async (context) => {
      await playCalls(
        context,
        reply.call("write", { filePath: "deep/er/new.txt", content: "new\n" }),
        reply.call("edit", { filePath: "made.txt", oldString: "", newString: "made\n" }),
      );
      const writes = fileRequests(context).filter((request) => request.startsWith("fs/write"));
      expect(writes).toEqual(["fs/write_text_file /deep/er/new.txt", "fs/write_text_file /made.txt"]);
      expect(await onDisk(context, "deep/er/new.txt")).toBe("new\n");
      expect(await onDisk(context, "made.txt")).toBe("made\n");
    });
  });

  test("keeps a new text that was not saved yet", async () => {
    const client = kind();
    await story({ client, files, config }, async (context) => {
      const path = join(context.repository.path, "new.txt");
      client.buffers?.set(path, "typed\n");
      const [refused] = await playCalls(
        context,
        reply.call("write", { filePath: "new.txt", content: "new\n" }),
      );
      expect(refused).toContain("is open in the editor and not saved");
      expect(client.buffers?.get(path)).toBe("typed\n");
    });
  });
});

test("an editor without file methods is never asked for files", async () => {
  await story({ client: plain(), files, config }, async (context) => {
    await playCalls(context, read, edit("two", "2"));
    expect(fileRequests(context)).toEqual([]);
    expect(await onDisk(context)).toBe("one\n2\n");
  });
});

test("an editor that only reads supplies its text, and the disk receives the edit", async () => {
  const client = { ...withFs(), capabilities: { fs: { readTextFile: true } } };
  await story({ client, files, config }, async (context) => {
    buffer(client, context, "one\ntwo\nunsaved\n");
    await playCalls(context, read, edit("unsaved", "kept"));
    expect(fileRequests(context)).not.toContain("fs/write_text_file /a.txt");
    expect(await onDisk(context)).toBe("one\ntwo\nkept\n");
  });
});

test("a buffer that the user changed since the read makes a tolerant edit stale", async () => {
  const client = withFs();
  await story({ client, files, config }, async (context) => {
    const [, refused] = await playCalls(
      context,
      read,
      () => void buffer(client, context, "one\ntwo\ntyped\n"),
      edit("  two  ", "2"),
    );
    expect(refused).toContain("was changed since it was read");
    expect(await onDisk(context)).toBe("one\ntwo\n");
  });
});

test("after a command writes a file, its text comes from the disk, not an old buffer", async () => {
  const client = withFs();
  await story({ client, files, config }, async (context) => {
    buffer(client, context, "one\ntwo\n");
    const results = await playCalls(
      context,
      read,
      reply.call("bash", { command: "printf 'by command\\n' > a.txt" }),
      read,
      edit("by command", "by edit"),
    );
    expect(results[2]).toContain("1: by command");
    expect(results[3]).toContain("Changed a.txt");
    expect(await onDisk(context)).toBe("by edit\n");
  });
});

test("the user's typing is not overwritten when a command also wrote the file", async () => {
  const client = withFs();
  await story({ client, files, config }, async (context) => {
    buffer(client, context, "one\ntwo\n");
    const results = await playCalls(
      context,
      read,
      () => void buffer(client, context, "one\ntwo\ntyped\n"),
      reply.call("bash", { command: "printf 'by command\\n' > a.txt" }),
      read,
      edit("by command", "by edit"),
      () => void buffer(client, context, "by command\n"),
      edit("by command", "by edit"),
    );
    expect(results[2]).toContain("1: by command");
    expect(results[3]).toContain("has unsaved changes in the editor");
    expect(results[4]).toContain("Changed a.txt");
    expect(await onDisk(context)).toBe("by edit\n");
  });
});

test("does not read a buffer that missed a change, but one that the user edits later", async () => {
  const client: ClientKind = {
    ...withFs(),
    writeFile: () => Promise.reject(new RequestError(-32603, "the buffer is read-only")),
  };
  await story({ client, files, config }, async (context) => {
    buffer(client, context, "one\ntwo\nunsaved\n");
    const results = await playCalls(
      context,
      read,
      edit("two", "2"),
      read,
      () => void buffer(client, context, "one\ntwo\nunsaved and more\n"),
      read,
    );
    expect(results[2]).toContain("2: 2\n3: unsaved");
    expect(results[3]).toContain("2: two\n3: unsaved and more");
    expect(await onDisk(context)).toBe("one\n2\nunsaved\n");
  });
});

test("text that the editor formats on save is shown, undone, and sent to the model", async () => {
  const client: ClientKind = {
    ...withFs(),
    writeFile: async (path, content) => {
      await writeFile(path, content.replaceAll("2", "two "));
      return {};
    },
  };
  await story({ client, files, config }, async (context) => {
    const { editor } = context;
    const [, edited, again] = await playCalls(context, read, edit("two", "2"), edit("two ", "three"));
    expect(edited).toContain("The editor changed the text when it saved it");
    expect(again).toContain("Changed a.txt");
    expect(await onDisk(context)).toBe("one\nthree\n");
    const sessionId = editor.wire.updates[0]?.sessionId ?? "";
    const [, call] = toolCalls(editor.updates(sessionId));
    expect(call?.content).toMatchObject([{ newText: "one\ntwo \n" }]);
    await editor.prompt(sessionId, "/undo");
    expect(await onDisk(context)).toBe("one\ntwo \n");
  });
});

/** Editors that break their promises, each in another way. */
const unable: [string, Partial<ClientKind>][] = [
  ["refuses reads", { readFile: () => Promise.reject(new RequestError(-32002, "outside of the project")) }],
  ["has no text for the file", { readFile: async () => ({ content: "" }) }],
  ["answers reads with nonsense", { readFile: async () => ({ text: 1 }) }],
  ["fails to write", { writeFile: () => Promise.reject(new RequestError(-32603, "ENOENT")) }],
  ["answers a failed write with a text", { writeFile: async () => "Error: cannot write" }],
  ["keeps what it is given in its buffer", { writeFile: async () => ({}) }],
  ["never answers reads", { readFile: () => new Promise(() => {}) }],
  ["never answers writes", { writeFile: () => new Promise(() => {}) }],
];
test.each(unable)("with an editor that %s, the disk is read and written", async (_, more) => {
  await story({ client: { ...withFs(), ...more }, files, config }, async (context) => {
    const [seen, edited] = await playCalls(context, read, edit("two", "2"));
    expect(seen).toContain("2: two");
    expect(edited).toContain("Changed a.txt");
    expect(await onDisk(context)).toBe("one\n2\n");
  });
});

test("the request to an editor that does not answer is cancelled", async () => {
  const client = { ...withFs(), readFile: () => new Promise(() => {}) };
  await story({ client, files, config }, async (context) => {
    await playCalls(context, read);
    const sent = context.editor.wire.entries.flatMap(({ direction, message }) =>
      direction === "fromAgent" && message !== undefined ? [message] : [],
    );
    const requested = sent.find(
      ({ kind, json }) => kind === "request" && json.method === "fs/read_text_file",
    );
    const cancelled = sent.find(({ json }) => json.method === "$/cancel_request");
    expect(cancelled?.json.params).toEqual({ requestId: requested?.json.id });
  });
});

describe("line endings and byte order marks", () => {
  test("a buffer with other line endings counts as unchanged; an edit keeps the file's", async () => {
    const client = withFs();
    await story({ client, files: { "a.txt": "one\r\ntwo\r\n" }, config }, async (context) => {
      buffer(client, context, "one\ntwo\n");
      await playCalls(context, read, edit("two", "2"));
      expect(await onDisk(context)).toBe("one\r\n2\r\n");
    });
  });

  test("a byte order mark is preserved", async () => {
    await story({ client: withFs(), files: { "a.txt": "\uFEFFone\ntwo\n" }, config }, async (context) => {
      await playCalls(context, read, edit("two", "2"));
      expect(await onDisk(context)).toBe("\uFEFFone\n2\n");
    });
  });
});
