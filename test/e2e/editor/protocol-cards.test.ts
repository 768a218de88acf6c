import { join } from "node:path";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { describe, expect, test } from "vitest";
import { toSlashes } from "../../../src/base/files/paths.ts";
import { type ClientKind, plain } from "../../support/editor/clients.ts";
import { draftStoriesOfOneAgent } from "../../support/editor/draft-editor.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { type JsonObject, toList, toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();
const draftStory = draftStoriesOfOneAgent();

const files = {
  "gone.txt": "gone\n",
  "old.txt": "one\n",
  "full.txt": "full\n",
  "fairlead.json": JSON.stringify({ provider: { test: { models: { scripted: { family: "gpt" } } } } }),
};
const config = { permission: { edit: "allow" } };
const read = (filePath: string) => reply.callScript("read", { filePath });
const readAll = reply.together(read("gone.txt"), read("old.txt"), read("full.txt"));
const patch = `*** Begin Patch
*** Delete File: gone.txt
*** Update File: old.txt
*** Move to: new.txt
@@
-one
+two
*** Update File: full.txt
@@
-full
*** End Patch`;

const deletedDiffs = (): ClientKind => ({
  ...plain(),
  capabilities: { _meta: { deleted_diffs: true } },
});

describe("a deleted, a moved and an emptied file differ", () => {
  test.each([
    ["as extensions", plain(), {}],
    ["by the draft's field, if the client reads it", deletedDiffs(), { deleted: true }],
  ])("in version 1 %s", async (_, client, field) => {
    await story({ files, config, client }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(readAll)
        .reply(reply.call("apply_patch", { patchText: patch }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const path = (name: string) => join(repository.path, name);
      const card = toolCalls(editor.updates(sessionId)).at(-1);
      expect(card?.content).toEqual([
        {
          type: "diff",
          path: path("gone.txt"),
          oldText: "gone\n",
          newText: "",
          ...field,
          _meta: { kind: "delete" },
        },
        {
          type: "diff",
          path: path("new.txt"),
          oldText: "one\n",
          newText: "two\n",
          _meta: { kind: "move", fromPath: path("old.txt") },
        },
        { type: "diff", path: path("full.txt"), oldText: "full\n", newText: "", _meta: { kind: "update" } },
      ]);
    });
  });

  test("in version 2, with a patch that names absolute paths", async () => {
    await draftStory({ files, config }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.request("session/new", { cwd: repository.path, mcpServers: [] });
      model
        .reply(readAll)
        .reply(reply.call("apply_patch", { patchText: patch }))
        .reply("Done.");
      await editor.turn(String(sessionId), "Go");
      const [deleted, moved, emptied] = ["gone.txt", "new.txt", "full.txt"].map((name) =>
        join(repository.path, name),
      );
      const diffs = editor
        .updates(String(sessionId))
        .flatMap(({ content }) => toList(content).map(toObject))
        .filter(({ type }) => type === "diff");
      expect(diffs.map(({ changes }) => toList(changes)[0])).toEqual([
        { path: deleted, fileType: "text", operation: "delete" },
        { path: moved, oldPath: join(repository.path, "old.txt"), fileType: "text", operation: "move" },
        { path: emptied, fileType: "text", operation: "modify" },
      ]);
      const named = (name: string) => toSlashes(join(repository.path, name));
      expect(diffs.map(({ patch }) => String(toObject(patch).text).split("\n")[0])).toEqual([
        `diff --git ${named("gone.txt")} ${named("gone.txt")}`,
        `diff --git ${named("old.txt")} ${named("new.txt")}`,
        `diff --git ${named("full.txt")} ${named("full.txt")}`,
      ]);
    });
  });
});

describe("a call that asks after it has started is paused in version 2", () => {
  const statuses = (updates: readonly JsonObject[]) =>
    updates.flatMap(({ sessionUpdate, status }) =>
      sessionUpdate === "tool_call_update" && status !== undefined ? [status] : [],
    );
  const question = {
    question: "Which one?",
    header: "Which",
    options: [
      { label: "One", description: "The first" },
      { label: "Two", description: "The second" },
    ],
  };

  test.each([
    ["by a form", { elicitation: { form: {} } }],
    ["by a permission request", {}],
  ])("%s", async (_, capabilities) => {
    const elicit = () => ({ action: "accept", content: { question_1: "One" } }) as const;
    const permission = ({ options: [first] }: RequestPermissionRequest) =>
      ({ outcome: "selected", optionId: first?.optionId ?? "" }) as const;
    await draftStory({ capabilities, elicit, permission }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.request("session/new", { cwd: repository.path, mcpServers: [] });
      model.reply(reply.call("question", { questions: [question] })).reply("One then.");
      await editor.turn(String(sessionId), "Go");
      expect(statuses(editor.updates(String(sessionId)))).toEqual([
        "pending",
        "in_progress",
        "paused",
        "in_progress",
        "completed",
      ]);
    });
  });
});
