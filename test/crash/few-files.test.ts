import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { expectFailure } from "../support/failure.ts";
import * as reply from "../support/model/reply.ts";
import { story } from "../support/editor/story.ts";
import { toolCalls } from "../support/transcript.ts";

const program = (limit: number) => [
  fileURLToPath(new URL("./programs/few-files-agent.ts", import.meta.url)),
  String(limit),
];
/** More sessions than any of the limits allows. */
const sessionLimit = 300;

test.runIf(process.platform === "linux").each([96, 128, 192])(
  "with %i open files one session too many is refused, and open ones keep working",
  async (limit) => {
    const config = { permission: "allow" };
    await story({ program: program(limit), config }, async ({ editor, model }) => {
      const ids: string[] = [];
      let refusal: { message: string } | undefined;
      while (refusal === undefined && ids.length < sessionLimit) {
        const created = editor.newSession();
        const outcome = await created.catch(() => undefined);
        if (outcome === undefined) refusal = await expectFailure(created);
        else ids.push(outcome.sessionId);
      }
      expect(refusal?.message).toMatch(/too many files are open.*[Cc]lose/);
      expect(ids.length).toBeGreaterThan(limit / 8);
      const [first = "", second = ""] = ids;
      model.otherwise(({ toolResults }) =>
        toolResults.length > 0
          ? "Done."
          : [reply.call("bash", { command: "echo hi" }), reply.finish("tool_calls")],
      );
      for (const id of [first, second, first]) {
        expect((await editor.prompt(id, "Run it")).stopReason).toBe("end_turn");
        expect(toolCalls(editor.updates(id)).map(({ status }) => status)).not.toContain("failed");
      }
      expect((await editor.list()).sessions.length).toBeGreaterThan(0);
      // A first turn leaves a few files open: connections, a watchdog.
      for (const id of ids.slice(-ids.length / 2)) await editor.closeSession(id);
      const { sessionId } = await editor.newSession();
      expect((await editor.prompt(sessionId, "Run it")).stopReason).toBe("end_turn");
    });
  },
);
