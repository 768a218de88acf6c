import type { CreateElicitationRequest, CreateElicitationResponse } from "@agentclientprotocol/sdk";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type ClientKind,
  type Elicit,
  plain,
  withElicitation,
  zedLike,
} from "../../support/editor/clients.ts";
import { draftStoriesOfOneAgent } from "../../support/editor/draft-editor.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { toList, toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";
import { Bell } from "../../support/waiting.ts";

const story = storiesOfOneAgent();
const draftStory = draftStoriesOfOneAgent();

const config = { permission: { bash: "ask" } };
const bash = (command: string) => reply.call("bash", { command });
const touchTwo = () => {
  const touch = (name: string) => reply.callScript("bash", { command: `touch ${name}` });
  return reply.together(touch("one"), touch("two"));
};
const plainNo =
  "Not run. The user rejected this call. Do not try it again in another form: choose another way, or ask.";
const reasonText = (reason: string) =>
  `Not run. The user rejected this call and wrote: ${reason}\n\nDo what the user wrote. Do not try this call again in another form.`;
const mateText =
  "Not run. The user rejected another call of this step and gave a reason: see the result of that call. Call this again only if it still fits.";

const withFeedback = {
  outcome: "selected",
  optionId: "reject_once",
  _meta: { feedback: "Use pnpm." },
} as const;
const why = { outcome: "selected", optionId: "reject_with_reason" } as const;

/** A form that is answered with these reasons, one after the other, and the forms that were shown. */
function formWith(...answers: CreateElicitationResponse[]) {
  const requested: CreateElicitationRequest[] = [];
  const elicit: Elicit = (request) => {
    requested.push(request);
    return answers[requested.length - 1] ?? { action: "cancel" };
  };
  return { requested, elicit };
}

const accept = (reason?: string): CreateElicitationResponse => ({
  action: "accept",
  content: reason === undefined ? {} : { reason },
});

/**
 * Plays a turn whose only call is rejected. Returns the tool result that the model received, if it was called
 * again.
 */
async function rejectOne({ editor, model }: StoryContext, sessionId: string, goesOn: boolean) {
  const before = model.requests.length;
  model.reply(bash("npm install"));
  if (goesOn) model.reply("With pnpm then.");
  const { stopReason } = await editor.prompt(sessionId, "Install it");
  expect(stopReason).toBe("end_turn");
  expect(model.requests.length - before).toBe(goesOn ? 2 : 1);
  return model.requests[before + 1]?.toolResults.at(-1);
}

describe("a reason in the answer of any client", () => {
  const clients: [string, () => ClientKind][] = [
    ["plain", plain],
    ["with forms", () => withElicitation()],
    ["like Zed", () => zedLike()],
  ];
  test.each(clients)("continues the turn in a client that is %s, without a form", async (_, client) => {
    await story({ config, client: client(), permission: withFeedback }, async (context) => {
      const { editor, repository } = context;
      const { sessionId } = await editor.newSession();
      expect(await rejectOne(context, sessionId, true)).toBe(reasonText("Use pnpm."));
      expect(await repository.git("status", "--porcelain")).toBe("");
      expect(agentText(editor.updates(sessionId))).toContain("With pnpm then.");
    });
  });

  test("is in the loaded session, the export and the decision log", async () => {
    await story({ config, permission: withFeedback }, async (context) => {
      const { editor, repository } = context;
      const { sessionId } = await editor.newSession();
      await rejectOne(context, sessionId, true);
      await editor.prompt(sessionId, "/permissions log");
      expect(agentText(editor.updates(sessionId))).toContain(
        "- rejected by you: bash: bash `npm install`, because: Use pnpm.",
      );
      await editor.prompt(sessionId, "/export notes.md");
      expect(await readFile(join(repository.path, "notes.md"), "utf8")).toContain("wrote: Use pnpm.");
      await editor.closeSession(sessionId);
      const before = editor.updates(sessionId).length;
      await editor.load(sessionId);
      const [call] = toolCalls(editor.updates(sessionId).slice(before));
      expect(call).toMatchObject({ status: "failed" });
      expect(JSON.stringify(call?.content)).toContain("wrote: Use pnpm.");
    });
  });

  test("continues a task, and the other calls of the step do not run", async () => {
    await story({ config, permission: withFeedback }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("task", { description: "Install", prompt: "Install", subagent_type: "general" }))
        .reply(touchTwo())
        .reply("Nothing was installed.")
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[2]?.toolResults).toEqual([reasonText("Use pnpm."), mateText]);
      expect(model.requests[3]?.toolResults.at(-1)).toContain("Nothing was installed.");
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("is ignored if the call is allowed, and if it is not text", async () => {
    const answers = [
      { outcome: "selected", optionId: "allow_once", _meta: { feedback: "Fine." } },
      { outcome: "selected", optionId: "reject_once", _meta: { feedback: 7 } },
    ] as const;
    let next = 0;
    const permission = () => answers[next++] ?? ("cancelled" as const);
    await story({ config, permission }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("true")).reply(bash("false"));
      await editor.prompt(sessionId, "Go");
      model.reply("I see.");
      await editor.prompt(sessionId, "And?");
      const results = model.requests[2]?.messages.filter(({ role }) => role === "tool") ?? [];
      expect(results.at(-1)?.content).toBe(plainNo);
    });
  });
});

describe("a client with forms that shows one option per kind", () => {
  test("shows a form after a rejection, and the reason continues the turn", async () => {
    const { requested, elicit } = formWith(accept(" Use pnpm.\n"));
    const client = withElicitation(elicit);
    await story({ config, client, permission: "reject_once" }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      expect(await rejectOne(context, sessionId, true)).toBe(reasonText("Use pnpm."));
      const [call] = toolCalls(context.editor.updates(sessionId));
      expect(requested).toEqual([
        {
          sessionId,
          mode: "form",
          toolCallId: call?.toolCallId,
          message: "Why not? npm install",
          requestedSchema: {
            type: "object",
            properties: {
              reason: {
                type: "string",
                title: "Reason",
                description: "The model reads it and continues. Leave it empty to end the turn.",
              },
            },
          },
        },
      ]);
    });
  });

  const plainAnswers: [string, CreateElicitationResponse][] = [
    ["cancelled", { action: "cancel" }],
    ["declined", { action: "decline" }],
    ["left empty", accept()],
    ["filled with blanks", accept("  ")],
  ];
  test.each(plainAnswers)("ends the turn if the form is %s, and shows no other", async (_, answer) => {
    const { requested, elicit } = formWith(answer, accept("Too late."));
    const client = withElicitation(elicit);
    await story({ config, client, permission: "reject_once" }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      await rejectOne(context, sessionId, false);
      await rejectOne(context, sessionId, false);
      expect(requested).toHaveLength(1);
      const other = await context.editor.newSession();
      expect(await rejectOne(context, other.sessionId, true)).toBe(reasonText("Too late."));
    });
  });

  test("does not run the call if the approval setting changes while the form is open", async () => {
    const bell = new Bell();
    const shown: CreateElicitationRequest[] = [];
    const answer = Promise.withResolvers<CreateElicitationResponse>();
    const client = withElicitation((request) => {
      shown.push(request);
      bell.ring();
      return answer.promise;
    });
    await story({ config, client, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(touchTwo()).reply("Fine.");
      const turn = editor.prompt(sessionId, "Go");
      await bell.until(() => shown[0], "the form");
      await editor.setConfigOption(sessionId, "approval", "auto");
      answer.resolve(accept("Not now."));
      await turn;
      expect(model.requests[1]?.toolResults).toEqual([reasonText("Not now."), mateText]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("cancels the turn while the form is open", async () => {
    const bell = new Bell();
    const shown: CreateElicitationRequest[] = [];
    const client = withElicitation((request) => {
      shown.push(request);
      bell.ring();
      return new Promise(() => {});
    });
    await story({ config, client, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("touch one"));
      const turn = editor.prompt(sessionId, "Go");
      await bell.until(() => shown[0], "the form");
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
    });
  });
});

describe("a client with forms that shows several options of a kind", () => {
  test("offers a rejection with a reason, whose form continues the turn", async () => {
    const { requested, elicit } = formWith(accept("Use pnpm."));
    await story({ config, client: zedLike(new Map(), elicit), permission: why }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      expect(await rejectOne(context, sessionId, true)).toBe(reasonText("Use pnpm."));
      expect(requested).toHaveLength(1);
      expect(context.editor.permissionRequests[0]?.options.slice(-2)).toEqual([
        { optionId: "reject_once", name: "Reject", kind: "reject_once" },
        { optionId: "reject_with_reason", name: "Reject, and say why", kind: "reject_once" },
      ]);
    });
  });

  test("shows no form for a plain rejection", async () => {
    const { requested, elicit } = formWith(accept("Not asked."));
    const client = zedLike(new Map(), elicit);
    await story({ config, client, permission: "reject_once" }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      await rejectOne(context, sessionId, false);
      expect(requested).toEqual([]);
    });
  });

  test("a form without a reason is a plain rejection each time", async () => {
    const { requested, elicit } = formWith({ action: "cancel" }, accept("Use pnpm."));
    await story({ config, client: zedLike(new Map(), elicit), permission: why }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      await rejectOne(context, sessionId, false);
      expect(await rejectOne(context, sessionId, true)).toBe(reasonText("Use pnpm."));
      expect(requested).toHaveLength(2);
    });
  });
});

describe("a client without forms", () => {
  test("sends the next message after the refused call and its result", async () => {
    await story({ config, permission: "reject_once" }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      await rejectOne(context, sessionId, false);
      context.model.reply("With pnpm then.");
      await context.editor.prompt(sessionId, "Use pnpm.");
      const messages = context.model.requests[1]?.messages.slice(-3) ?? [];
      expect(messages.map(({ role }) => role)).toEqual(["assistant", "tool", "user"]);
      expect(JSON.stringify(messages[0])).toContain("npm install");
      expect(messages[1]?.content).toBe(plainNo);
      expect(context.model.requests[1]?.userText).toBe("Use pnpm.");
    });
  });

  test("continues the turn with a message added while the question was open", async () => {
    const answer = Promise.withResolvers<"reject_once">();
    await story({ config, permission: () => answer.promise }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("npm install")).reply("With pnpm then.");
      const turn = editor.prompt(sessionId, "Install it");
      await editor.permissionRequest(1);
      const prompt = [{ type: "text", text: "Use pnpm." }];
      await editor.request("_session/steering", { sessionId, prompt });
      answer.resolve("reject_once");
      expect((await turn).stopReason).toBe("end_turn");
      const result = model.requests[1]?.messages.find(({ role }) => role === "tool");
      expect(result?.content).toBe(plainNo);
      expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain("Use pnpm.");
    });
  });
});

describe("version 2", () => {
  test.each([
    ["in its answer", { ...withFeedback }, 0],
    ["in the form of an option", { ...why }, 1],
  ])("a client gives the reason %s", async (_, outcome, forms) => {
    const shown: unknown[] = [];
    const elicit = (request: object) => {
      shown.push(request);
      return { action: "accept" as const, content: { reason: "Use pnpm." } };
    };
    const capabilities = { elicitation: { form: {} } };
    const options = { config, capabilities, elicit, permission: () => outcome };
    await draftStory(options, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.request("session/new", { cwd: repository.path });
      model.reply(bash("npm install")).reply("With pnpm then.");
      const { idle } = await editor.turn(String(sessionId), "Install it");
      expect(idle["stopReason"]).toBe("end_turn");
      expect(model.requests[1]?.toolResults).toEqual([reasonText("Use pnpm.")]);
      expect(shown).toHaveLength(forms);
      const ids = toList(editor.permissionRequests[0]?.options).map((option) => toObject(option)["optionId"]);
      expect(ids.at(-1)).toBe("reject_with_reason");
    });
  });
});
