import type { CreateElicitationRequest, CreateElicitationResponse } from "@agentclientprotocol/sdk";
import { RequestError } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import {
  plain,
  withElicitation,
  zedLike,
  type ClientKind,
  type Elicit,
} from "../../support/editor/clients.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";
import { Bell } from "../../support/waiting.ts";

const story = storiesOfOneAgent();

const database = {
  question: "Which database?",
  header: "Database",
  options: [
    { label: "SQLite", description: "One file" },
    { label: "Postgres", description: "" },
  ],
};
const features = { ...database, question: "Which features?", header: "Features", multiple: true };

const ask = (...questions: unknown[]) => reply.call("question", { questions });

/** Plays one turn in which the model asks, and returns the text that the model then received. */
async function askIn({ editor, model }: StoryContext, ...questions: unknown[]) {
  const { sessionId } = await editor.newSession();
  model.reply(ask(...questions)).reply("Understood.");
  const { stopReason } = await editor.prompt(sessionId, "Begin");
  const [call] = toolCalls(editor.updates(sessionId));
  return { sessionId, stopReason, call, read: model.requests[1]?.toolResults };
}

const answering = (elicit: Elicit): [string, () => ClientKind][] => [
  ["forms only", () => withElicitation(elicit)],
  ["everything Zed has", () => zedLike(new Map(), elicit)],
];

describe("an editor with forms", () => {
  test("shows one form for all questions, and the answers reach the model", async () => {
    const requested: CreateElicitationRequest[] = [];
    const elicit = (request: CreateElicitationRequest): CreateElicitationResponse => {
      requested.push(request);
      const content = {
        question_1: "SQLite",
        question_2: ["SQLite", "Postgres"],
        question_2_custom: "a cache",
      };
      return { action: "accept", content };
    };
    await story({ client: withElicitation(elicit) }, async (context) => {
      const { sessionId, call, read } = await askIn(context, database, features);
      const choices = [
        { const: "SQLite", title: "SQLite — One file" },
        { const: "Postgres", title: "Postgres" },
      ];
      const custom = (name: string, header: string) => ({
        type: "string",
        title: `${header}: another answer`,
        description: "Free text, if none of the options fits.",
        _meta: { _askUserQuestionCustomAnswer: { questionId: name } },
      });
      expect(requested).toEqual([
        {
          mode: "form",
          sessionId,
          toolCallId: call?.toolCallId,
          message: "2 questions",
          requestedSchema: {
            type: "object",
            properties: {
              question_1: {
                type: "string",
                title: "Database",
                description: "Which database?",
                oneOf: choices,
              },
              question_1_custom: custom("question_1", "Database"),
              question_2: {
                type: "array",
                title: "Features",
                description: "Which features?",
                items: { anyOf: choices },
              },
              question_2_custom: custom("question_2", "Features"),
            },
          },
        },
      ]);
      const answers =
        'The user answered:\n- Which database?\n  "SQLite"\n- Which features?\n  "SQLite", "Postgres"; in their own words: a cache';
      expect(read).toEqual([answers]);
      expect(call).toMatchObject({
        title: "2 questions: Database, Features",
        status: "completed",
        rawInput: { questions: [database, features] },
      });
    });
  });

  test.each(answering(() => ({ action: "decline" })))(
    "that declines (%s) lets the work continue",
    async (_, client) => {
      await story({ client: client() }, async (context) => {
        const { sessionId, read, stopReason } = await askIn(context, database);
        expect(read).toEqual([expect.stringContaining("The user skipped this.")]);
        expect(stopReason).toBe("end_turn");
        expect(agentText(context.editor.updates(sessionId))).toBe("Understood.");
      });
    },
  );

  test.each(answering(() => ({ action: "cancel" })))(
    "that closes the form (%s) ends the turn",
    async (_, client) => {
      await story({ client: client() }, async (context) => {
        const { editor, model } = context;
        const { sessionId } = await editor.newSession();
        model.reply(ask(database));
        expect((await editor.prompt(sessionId, "Begin")).stopReason).toBe("end_turn");
        const [call] = toolCalls(editor.updates(sessionId));
        expect(call).toMatchObject({
          status: "failed",
          content: [{ content: { text: "The user closed the question without an answer." } }],
        });
        model.reply("I go on.");
        await editor.prompt(sessionId, "Take SQLite");
        expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain(
          "The user closed the question without an answer.",
        );
      });
    },
  );

  test.each<[string, Elicit]>([
    [
      "fails",
      () => {
        throw RequestError.methodNotFound("elicitation/create");
      },
    ],
    ["answers what nobody knows", () => ({ action: "later" })],
  ])("that %s makes the model ask in text", async (_, elicit) => {
    await story({ client: withElicitation(elicit) }, async (context) => {
      const { read } = await askIn(context, database);
      expect(read).toEqual([expect.stringMatching(/^Nobody was asked: .* end your turn\.$/)]);
    });
  });

  test("that never answers does not delay the cancellation of a turn", async () => {
    const bell = new Bell();
    let isAsked = false;
    const elicit = () => {
      isAsked = true;
      bell.ring();
      return new Promise<CreateElicitationResponse>(() => {});
    };
    await story({ client: withElicitation(elicit) }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(ask(database));
      const turn = editor.prompt(sessionId, "Begin");
      await bell.until(() => isAsked || undefined, "the form");
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      expect(toolCalls(editor.updates(sessionId))[0]?.status).toBe("failed");
      const taken = editor.wire.entries.filter(
        ({ direction, line }) => direction === "fromAgent" && line.includes("$/cancel_request"),
      );
      expect(taken).toHaveLength(1);
    });
  });
});

describe("an editor without forms", () => {
  test("shows one choice as a permission prompt with an option for each answer", async () => {
    const options = { client: plain(), permission: { outcome: "selected", optionId: "answer_2" } } as const;
    await story(options, async (context) => {
      const { read } = await askIn(context, database);
      const [request] = context.editor.permissionRequests;
      expect(request?.toolCall.title).toBe("Which database?");
      expect(request?.options).toEqual([
        { optionId: "answer_1", name: "SQLite", kind: "allow_once" },
        { optionId: "answer_2", name: "Postgres", kind: "allow_once" },
        { optionId: "skip", name: "Skip", kind: "reject_once" },
      ]);
      expect(read).toEqual(['The user answered:\n- Which database?\n  "Postgres"']);
    });
  });

  test("may skip it, and the work continues", async () => {
    await story({ client: plain(), permission: "reject_once" }, async (context) => {
      const { read } = await askIn(context, database);
      expect(read).toEqual([expect.stringContaining("The user skipped this.")]);
    });
  });

  test("that answers with cancelled ends the turn as cancelled, before any notice", async () => {
    await story({ client: plain(), permission: "cancelled" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(ask(database));
      expect((await editor.prompt(sessionId, "Begin")).stopReason).toBe("cancelled");
      expect(model.requests).toHaveLength(1);
    });
  });

  test.each([
    ["several questions", [database, database]],
    ["several choices", [features]],
    [
      "five options",
      [{ ...database, options: ["a", "b", "c", "d", "e"].map((label) => ({ label, description: "" })) }],
    ],
  ])("is not asked %s: the model writes them", async (_, questions) => {
    await story({ client: plain() }, async (context) => {
      const { read } = await askIn(context, ...questions);
      expect(read).toEqual([expect.stringMatching(/^Nobody was asked: .* end your turn\.$/)]);
      expect(context.editor.permissionRequests).toEqual([]);
    });
  });

  test("that never answers does not delay the cancellation of a turn", async () => {
    await story({ client: plain(), permission: "never" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(ask(database));
      const turn = editor.prompt(sessionId, "Begin");
      await editor.permissionRequest(1);
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
    });
  });
});

test("a rule can remove the tool", async () => {
  await story({ config: { permission: { question: "deny" } } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    expect(model.requests[0]?.toolNames).not.toContain("question");
  });
});
