import { execFile } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { withSlashes } from "../../support/platform/path-spelling.ts";
import { lacksPipesAndDevices } from "../../support/platform/platform.ts";

const story = storiesOfOneAgent();

/** A call of each tool that takes a path. */
const calls: Readonly<Record<string, (path: string) => unknown>> = {
  read: (filePath) => ({ filePath }),
  write: (filePath) => ({ filePath, content: "new\n" }),
  edit: (filePath) => ({ filePath, oldString: "old", newString: "new" }),
  multiedit: (filePath) => ({ filePath, edits: [{ oldString: "old", newString: "new" }] }),
  list: (path) => ({ path }),
  glob: (path) => ({ pattern: "*", path }),
  grep: (path) => ({ pattern: "old", path }),
  bash: (workdir) => ({ command: "pwd", workdir }),
};

const patches: readonly ((path: string) => string)[] = [
  (path) => `*** Update File: ${path}\n@@\n-old\n+new`,
  (path) => `*** Delete File: ${path}`,
  (path) => `*** Add File: ${path}\n+new`,
  (path) => `*** Update File: a.txt\n*** Move to: ${path}\n@@\n-old\n+new`,
];

const asPatch = (patch: string) => ({ patchText: `*** Begin Patch\n${patch}\n*** End Patch` });

interface Call {
  readonly tool: string;
  readonly input: (path: string) => unknown;
}

const usualCalls: readonly Call[] = Object.entries(calls).map(([tool, input]) => ({ tool, input }));
const patchCalls: readonly Call[] = patches.map((patch) => ({
  tool: "apply_patch",
  input: (path) => asPatch(patch(path)),
}));

/** Selects a model family that edits with patches. */
const patching = {
  "fairlead.json": JSON.stringify({ provider: { test: { models: { scripted: { family: "gpt" } } } } }),
};

/** Paths in a folder outside the workspace, each with something else at it. */
async function fill(folder: string): Promise<string[]> {
  await writeFile(join(folder, "file"), "old\n");
  await mkdir(join(folder, "folder"));
  if (!lacksPipesAndDevices) await promisify(execFile)("mkfifo", [join(folder, "pipe")]);
  await mkdir(join(folder, "elsewhere"));
  await writeFile(join(folder, "elsewhere/file"), "old\n");
  await symlink(join(folder, "elsewhere/file"), join(folder, "link"));
  await symlink(join(folder, "circle"), join(folder, "circle"));
  return ["file", "folder", "pipe", "link", "circle", "missing", "file/below", "no/where"].map((name) =>
    join(folder, name),
  );
}

test.each([
  ["a denial by the user", "usual tools", "ask", {}, usualCalls],
  ["a denial by the user", "patches", "ask", patching, patchCalls],
  ["a denial by a rule", "usual tools", "deny", {}, usualCalls],
  ["a denial by a rule", "patches", "deny", patching, patchCalls],
] as const)(
  "%s gives the same answer whatever is at an outside path: %s",
  async (_, __, action, more, made) => {
    await using outside = await temporaryFolder();
    const paths = await fill(outside.path);
    const config = {
      permission: { "*": "allow", external_directory: action },
      experimental: { continue_loop_on_deny: true },
    };
    const files = { "a.txt": "old\n", ...more };
    await story({ config, permission: "reject_once", files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("read", { filePath: "a.txt" })).reply("Done.");
      await editor.prompt(sessionId, "Read");
      for (const { tool, input } of made) {
        const answers = new Set<string>();
        for (const path of paths) {
          model.reply(reply.call(tool, input(path))).reply("Done.");
          await editor.prompt(sessionId, `${tool} ${path}`);
          const answer = String(model.requests.at(-1)?.toolResults[0]);
          answers.add(answer.replaceAll(path, "PATH").replaceAll(withSlashes(path), "PATH"));
        }
        expect([tool, ...answers]).toEqual([tool, expect.stringMatching(/^Not run\. /)]);
      }
      const requested = action === "ask" ? made.length * paths.length : 0;
      expect(editor.permissionRequests).toHaveLength(requested);
    });
  },
);

test("the model learns what is wrong with an outside path only after approval", async () => {
  await using outside = await temporaryFolder();
  const config = { permission: { "*": "allow", external_directory: "ask" } };
  await story({ config, permission: "allow_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const filePath = join(outside.path, "missing");
    model.reply(reply.call("read", { filePath })).reply("Done.");
    await editor.prompt(sessionId, "Read");
    expect(editor.permissionRequests).toHaveLength(1);
    expect(model.requests.at(-1)?.toolResults).toEqual([expect.stringContaining("does not exist")]);
  });
});
