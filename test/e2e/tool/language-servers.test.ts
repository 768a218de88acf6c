import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { story } from "../../support/editor/story.ts";
import { typescriptServer } from "../../support/program/typescript-server.ts";

const files = {
  "tsconfig.json": '{ "compilerOptions": { "strict": true, "noEmit": true, "types": [], "lib": ["es5"] } }\n',
  "sum.ts": "export const sum = (a: number, b: number) => a + b;\nconst old: string = 1;\n",
  "use.ts": 'import { sum } from "./sum";\nexport const three: number = sum(1, 2);\n',
};

test("shows the model only the errors that its edits caused, from a real server", async () => {
  await story(
    { files, config: { lsp: { typescript: typescriptServer } } },
    async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "use.ts" }), reply.call("read", { filePath: "sum.ts" }))
        .reply(reply.call("edit", { filePath: "use.ts", oldString: "(1, 2)", newString: '(1, "2")' }))
        .reply(reply.call("edit", { filePath: "use.ts", oldString: '"2"', newString: "2" }))
        .reply(reply.call("edit", { filePath: "sum.ts", oldString: "=> a + b", newString: "=> `${a + b}`" }))
        .reply(reply.call("write", { filePath: "new.ts", content: "export const one: string = 1;\n" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Break and fix");
      const [, , broken, fixed, across, written] = model.requests.map(({ toolResults }) =>
        toolResults.at(-1),
      );
      const report = "typescript reports new errors:";
      expect(broken).toContain(
        `${report}\nuse.ts:2:37: Argument of type 'string' is not assignable to parameter of type 'number'. (2345)`,
      );
      expect(fixed).not.toContain("typescript");
      expect(across).toContain(
        `${report}\nuse.ts:2:14: Type 'string' is not assignable to type 'number'. (2322)`,
      );
      expect(written).toContain(
        `${report}\nnew.ts:1:14: Type 'number' is not assignable to type 'string'. (2322)`,
      );
      expect(editor.updates(sessionId, "agent_thought_chunk")).toEqual([]);
      expect(await readFile(join(repository.path, "use.ts"), "utf8")).toBe(files["use.ts"]);
    },
  );
});

test("a project's own servers start only after the user agreed", async () => {
  const script = 'require("node:fs").appendFileSync("started.txt", "started\\n"); process.stdin.resume();';
  const command = [process.execPath, "-e", script];
  const own = { "fairlead.json": JSON.stringify({ lsp: { own: { command, extensions: ["txt"] } } }) };
  const play = async (permission: "reject_once" | "allow_once") => {
    let started = "";
    await story({ files: { ...files, ...own }, permission }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("write", { filePath: "a.txt", content: "a\n" })).reply("Done.");
      await editor.prompt(sessionId, "Write");
      started = await readFile(join(repository.path, "started.txt"), "utf8").catch(() => "");
    });
    return started;
  };
  expect(await play("reject_once")).toBe("");
  expect(await play("allow_once")).toBe("started\n");
});
