import { expect, test } from "vitest";
import { Editor } from "../../support/editor/editor.ts";
import * as reply from "../../support/model/reply.ts";
import { story } from "../../support/editor/story.ts";
import { agentText } from "../../support/transcript.ts";

const config = { experimental: { continue_loop_on_deny: true }, permission: { bash: "ask" } };
const programOf = (userText: string) => /run (\w+)/.exec(userText)?.[1] ?? "none";

/** Sessions of an editor, each about to store another approval for the project. */
async function approvedSessions(editor: Editor, programs: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const program of programs) {
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, `run ${program}`);
    ids.push(sessionId);
  }
  return ids;
}

test.each([
  ["eight sessions of one process", 1, 8],
  ["two sessions of each of four processes", 4, 2],
])(
  "approvals that %s store for the project at the same time are all kept",
  async (_, processes, sessions) => {
    await story({ config, permission: "allow_always" }, async ({ editor, model, home, repository }) => {
      model.otherwise(({ userText, toolResults }) =>
        toolResults.length > 0
          ? "Done."
          : [reply.call("bash", { command: `${programOf(userText)} x` }), reply.finish("tool_calls")],
      );
      const others = Array.from(
        { length: processes - 1 },
        () => new Editor({ home: home.path, cwd: repository.path, permission: "allow_always" }),
      );
      const all = [editor, ...others];
      try {
        for (const other of others) await other.initialize();
        const programs: string[] = [];
        const keeping: (() => Promise<unknown>)[] = [];
        for (const [number, one] of all.entries()) {
          const own = Array.from({ length: sessions }, (_, index) => `prog${number}n${index}`);
          programs.push(...own);
          for (const id of await approvedSessions(one, own))
            keeping.push(() => one.prompt(id, "/permissions keep 1"));
        }
        await Promise.all(keeping.map((keep) => keep()));
        const { sessionId } = await editor.newSession();
        await editor.prompt(sessionId, "/permissions");
        const shown = agentText(editor.updates(sessionId));
        expect(programs.filter((program) => !shown.includes(`${program} `))).toEqual([]);
      } finally {
        for (const other of others) await other.close();
      }
      for (const other of others) other.assertClean();
    });
  },
);
