import { expect, test } from "vitest";
import { newMessageId, newSessionId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import { projectIdOf } from "../../src/storage/project-id.ts";
import { rebuildSession } from "../../src/storage/rebuilt-session.ts";

test("a session without its own file gets its folder from the newest answer", async () => {
  const id = newSessionId();
  const question = newMessageId();
  const tokens = { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } };
  const answer = (cwd: string): Message => ({
    info: {
      id: newMessageId(),
      sessionId: id,
      role: "assistant",
      parentId: question,
      time: { created: 2, completed: 3 },
      agent: "build",
      path: { cwd, root: "/repository" },
      model: { provider: "p", model: "m" },
      cost: 0.5,
      tokens,
      finish: "stop",
    },
    parts: [],
  });
  async function* messages(): AsyncGenerator<Message> {
    yield {
      info: { id: question, sessionId: id, role: "user", time: { created: 1 }, agent: "build" },
      parts: [],
    };
    yield answer("/repository/old");
    yield answer("/repository/packages/a");
  }
  const rebuilt = await rebuildSession({
    id,
    projectId: undefined,
    projectIds: [],
    journal: undefined,
    messages: messages(),
    childCost: 0,
    rows: [],
    wanted: { projectId: "prjwanted", cwd: "/elsewhere" },
  });
  expect(rebuilt?.info).toMatchObject({
    cwd: "/repository/packages/a",
    projectId: projectIdOf("/repository"),
    cost: 1,
  });
});
