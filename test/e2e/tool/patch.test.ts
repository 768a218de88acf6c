import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Selects a model family that edits with patches. */
const gpt = {
  "fairlead.json": JSON.stringify({ provider: { test: { models: { scripted: { family: "gpt" } } } } }),
};
const files = {
  ...gpt,
  "keep.txt": "one\ntwo\n",
  "old name.txt": "moved\nline\n",
  "gone.txt": "gone\n",
};
const config = { permission: { edit: "ask" } };

const patchText = [
  "*** Begin Patch",
  "*** Add File: new/a.txt",
  "+added",
  "*** Update File: keep.txt",
  "@@",
  " one",
  "-two",
  "+2",
  "*** Update File: old name.txt",
  "*** Move to: new/name.txt",
  "@@",
  " moved",
  "-line",
  "+lines",
  "*** Delete File: gone.txt",
  "*** End Patch",
].join("\n");

const reads = ["keep.txt", "old name.txt", "gone.txt"].map((filePath) => reply.call("read", { filePath }));

describe("a model of the GPT family", () => {
  test("patches several files after one question, and /undo reverts all of it", async () => {
    await story({ files, config, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const path = (name: string) => join(repository.path, name);
      const text = (name: string) => readFile(path(name), "utf8");
      const { sessionId } = await editor.newSession();
      model
        .reply(...reads)
        .reply(reply.call("apply_patch", { patchText }))
        .reply("Patched.");
      await editor.prompt(sessionId, "Patch it");
      expect(await text("new/a.txt")).toBe("added\n");
      expect(await text("keep.txt")).toBe("one\n2\n");
      expect(await text("new/name.txt")).toBe("moved\nlines\n");
      await expect(access(path("old name.txt"))).rejects.toThrow("ENOENT");
      await expect(access(path("gone.txt"))).rejects.toThrow("ENOENT");
      const card = toolCalls(editor.updates(sessionId)).at(-1);
      expect({ title: card?.title, kind: card?.kind, status: card?.status, content: card?.content }).toEqual({
        title: "Edit new/a.txt, keep.txt, old name.txt → new/name.txt and 1 more",
        kind: "edit",
        status: "completed",
        content: [
          diff("add", path("new/a.txt"), null, "added\n"),
          diff("update", path("keep.txt"), "one\ntwo\n", "one\n2\n"),
          {
            ...diff("move", path("new/name.txt"), "moved\nline\n", "moved\nlines\n"),
            _meta: { kind: "move", fromPath: path("old name.txt") },
          },
          diff("delete", path("gone.txt"), "gone\n", ""),
        ],
      });
      const before = editor.updates(sessionId).length;
      await editor.prompt(sessionId, "/undo");
      const report = agentText(editor.updates(sessionId).slice(before));
      for (const line of [
        "- gone.txt: brought back",
        "- keep.txt: restored",
        "- new/a.txt: removed, because the agent had created it",
        "- new/name.txt: removed, because the agent had created it",
        "- old name.txt: brought back",
      ])
        expect(report).toContain(line);
      expect(await text("keep.txt")).toBe("one\ntwo\n");
      expect(await text("old name.txt")).toBe("moved\nline\n");
      expect(await text("gone.txt")).toBe("gone\n");
      await expect(access(path("new/name.txt"))).rejects.toThrow("ENOENT");
      await expect(access(path("new/a.txt"))).rejects.toThrow("ENOENT");
      await editor.prompt(sessionId, "/redo");
      expect(await text("new/name.txt")).toBe("moved\nlines\n");
      await expect(access(path("gone.txt"))).rejects.toThrow("ENOENT");
    });
  });

  test("changes nothing when the user refuses", async () => {
    await story({ files, config, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(...reads).reply(reply.call("apply_patch", { patchText }));
      await editor.prompt(sessionId, "Patch it");
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("is offered patches instead of the other editing tools", async () => {
    await story({ files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(editingTools(model.requests.at(-1)?.toolNames)).toEqual(["apply_patch"]);
    });
  });
});

test("other models have no patch tool", async () => {
  await story({ files: {} }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    expect(editingTools(model.requests.at(-1)?.toolNames)).toEqual(["edit", "multiedit", "write"]);
  });
});

const diff = (kind: string, path: string, oldText: string | null, newText: string) => ({
  type: "diff",
  path,
  oldText,
  newText,
  _meta: { kind },
});

function editingTools(names: readonly string[] = []): string[] {
  return names.filter((name) => ["apply_patch", "edit", "multiedit", "write"].includes(name));
}
