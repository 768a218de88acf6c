import { expect, test } from "vitest";
import { storiesOfOneAgent } from "../support/editor/story.ts";
import { everything, waitForEverything } from "../support/mcp/mcp.ts";
import * as reply from "../support/model/reply.ts";
import { toolCalls } from "../support/transcript.ts";
import { failingCalls, files, findFault, homeFiles } from "./failures.ts";

const story = storiesOfOneAgent();

const config = {
  mcp: { everything: everything() },
  search: { web: { url: "http://127.0.0.1:9/?q={query}" } },
  permission: {
    "*": "allow",
    external_directory: "allow",
    read: { "*": "allow", "forbidden/*": "deny" },
    grep: { "*": "allow", "forbidden*": "deny" },
  },
};

test("each failure of a tool is short and names the next step", async () => {
  await story(
    { files: { ...files, "forbidden/key.txt": "x\n" }, homeFiles, config, permission: "allow_once" },
    async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      await waitForEverything(editor, sessionId);
      const read = (filePath: string) => reply.callScript("read", { filePath });
      model.reply(reply.together(read("a.txt"), read("stale.txt"))).reply("Read.");
      await editor.prompt(sessionId, "Read the files");
      await repository.write({ "stale.txt": "changed by somebody else\n" });
      const faults: string[] = [];
      for (const { tool, input, says } of failingCalls) {
        const name = `${tool} ${JSON.stringify(input).slice(0, 60)}`;
        model.reply(reply.call(tool, input)).reply("It failed.");
        await editor.prompt(sessionId, `Try ${name}`);
        const text = model.requests.at(-1)?.toolResults.at(-1) ?? "";
        const isMeant = typeof says === "string" ? text.includes(says) : says.test(text);
        const isFailed = toolCalls(editor.updates(sessionId)).at(-1)?.status === "failed";
        const fault = isMeant && isFailed ? findFault(text) : `not the expected failure: ${text}`;
        if (fault !== undefined) faults.push(`${name}: ${fault}`);
      }
      // This test is about calls with broken JSON.
      model.violations.length = 0;
      expect(faults).toEqual([]);
    },
  );
}, 120_000);
