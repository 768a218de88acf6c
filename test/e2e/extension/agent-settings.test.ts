import { expect, test } from "vitest";
import { storiesOfOneAgent } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();

const config = {
  agent: {
    review: {
      name: "Careful reviewer",
      description: "Reviews code.",
      mode: "primary",
      color: "#ff8800",
      topP: 0.5,
      seed: 7,
      welcome_message: "Hello there",
    },
  },
};

test("shows an agent's name and color in the pickers of the editor", async () => {
  await story({ config }, async ({ editor }) => {
    const session = await editor.newSession();
    const mode = session.modes?.availableModes.find(({ id }) => id === "review");
    expect(mode).toMatchObject({ name: "Careful reviewer", _meta: { color: "#ff8800" } });
    const option = session.configOptions?.find(({ id }) => id === "mode");
    expect(option).toMatchObject({
      options: expect.arrayContaining([
        expect.objectContaining({
          value: "review",
          name: "Careful reviewer",
          _meta: { color: "#ff8800" },
        }),
      ]),
    });
  });
});

test("sends known parameters of an agent to the provider and nothing else", async () => {
  await story({ config: { ...config, default_agent: "review" } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Done.");
    await editor.prompt(sessionId, "Go");
    const { body } = model.requests[0] ?? {};
    expect(body).toMatchObject({ top_p: 0.5, seed: 7 });
    expect(Object.keys(body ?? {})).not.toContain("topP");
    expect(Object.keys(body ?? {})).not.toContain("welcome_message");
  });
});
