import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { getRequestText } from "../../support/model/small-window.ts";
import { printFolder } from "../../support/platform/platform.ts";
import { fairlead } from "../../support/program/cli.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();
const config = { permission: { edit: { "*": "allow", "secret.txt": "deny" }, bash: "allow" } } as const;
const files = { "a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", "secret.txt": "secret\n" };

const task = (prompt: string, more: Record<string, unknown> = {}) =>
  ["task", { description: prompt, prompt, subagent_type: "general", worktree: true, ...more }] as const;
const startTask = (...args: Parameters<typeof task>) => reply.call(...task(...args));
const write = (filePath: string, content: string) => reply.call("write", { filePath, content });

const edit = (filePath: string, oldString: string, newString: string) =>
  reply.call("edit", { filePath, oldString, newString });

/** Requests of a task's session after this number of results. */
const isAt = (prompt: string, results: number) => (request: ModelRequest) => {
  const first = request.messages.find((message) => JSON.stringify(message).includes('"user"'));
  const count = request.messages.filter((message) =>
    JSON.stringify(message).includes('"role":"tool"'),
  ).length;
  return JSON.stringify(first).includes(prompt) && count === results;
};

const text = ({ repository }: StoryContext, name: string) => readFile(join(repository.path, name), "utf8");
const branches = async ({ repository }: StoryContext) =>
  (await execa("git", ["branch", "--format=%(refname:short)"], { cwd: repository.path })).stdout.split("\n");
const lastResults = ({ model }: StoryContext) => model.requests.at(-1)?.toolResults ?? [];
const readPlace = (report: string) => {
  const [, root = "", branch = ""] = /in the worktree (\S+) on the branch (\S+),/.exec(report) ?? [];
  return { root, branch };
};

test("a task in a worktree does not change the checkout until the user merges it", async () => {
  await story({ files, config, permission: "allow_once" }, async (context) => {
    const { editor, model, repository } = context;
    const before = await branches(context);
    const { sessionId } = await editor.newSession();
    await repository.write({ "b.txt": "changed\n", "new.txt": "untracked\n" });
    model.when(isAt("Change it", 0), edit("a.txt", "two", "2"));
    model.when(isAt("Change it", 1), write("secret.txt", "mine\n"));
    model.when(
      isAt("Change it", 2),
      reply.call("bash", { command: `${printFolder}; cat b.txt; rm b.txt; echo c > c.txt` }),
    );
    model.when(isAt("Change it", 3), "Changed.");
    model.reply(startTask("Change it")).reply("Done.");
    await editor.prompt(sessionId, "Go");
    const [report = ""] = lastResults(context);
    const { root, branch } = readPlace(report);
    expect(report).toMatch(
      /^Changed\.\n\nChanges \(a\.txt, b\.txt, c\.txt\) are in the worktree \S+ on the branch fairlead\/\w{8}, not in the user's files\. Only the user can merge them, with `\/merge fairlead\/\w{8}`\. Untracked files of the checkout \(1\) were not in it\.\n\n<task_metadata>\ntask_id: ses_/,
    );
    const [denied, printed] = [2, 3].map((at) => model.requests.find(isAt("Change it", at))?.toolResults[0]);
    expect(denied).toContain("secret.txt");
    expect(printed).toContain(`${root}\nchanged`);
    // The rules of the session apply to the task, which changed nothing and asked nothing.
    expect(await readFile(join(root, "secret.txt"), "utf8")).toBe("secret\n");
    expect([await text(context, "a.txt"), await text(context, "b.txt")]).toEqual([
      files["a.txt"],
      "changed\n",
    ]);
    expect(editor.permissionRequests).toHaveLength(0);
    const [card] = toolCalls(editor.updates(sessionId));
    expect(card).toMatchObject({ status: "completed", rawOutput: { worktree: { branch, root } } });
    expect(JSON.stringify(card?.content)).toContain(`/merge ${branch}`);
    await editor.prompt(sessionId, "/undo");
    expect(await readFile(join(root, "a.txt"), "utf8")).toBe("one\n2\nthree\n");

    await repository.write({ "a.txt": "one\ntwo\nthree\nfour\n" });
    await editor.prompt(sessionId, "/merge");
    expect(JSON.stringify(editor.permissionRequests)).toContain("1\\n2\\nthree".slice(3));
    expect(await text(context, "a.txt")).toBe("one\n2\nthree\nfour\n");
    expect(await text(context, "c.txt")).toBe("c\n");
    expect(existsSync(join(repository.path, "b.txt"))).toBe(false);
    await editor.prompt(sessionId, "/undo");
    expect(await text(context, "a.txt")).toBe("one\ntwo\nthree\nfour\n");
    await editor.prompt(sessionId, `/merge ${branch}`);
    await editor.prompt(sessionId, "/merge");
    expect(agentText(editor.updates(sessionId))).toContain("Nothing to merge: no worktree");
    await editor.closeSession(sessionId);
    expect(existsSync(root)).toBe(false);
    expect(await branches(context)).toEqual(before);
    expect(await text(context, "a.txt")).toBe("one\n2\nthree\nfour\n");
  });
});

test("several tasks in worktrees are merged one by one, and unmerged work stays", async () => {
  await story({ files, config, permission: "allow_once" }, async (context) => {
    const { editor, model, repository, home } = context;
    const { sessionId } = await editor.newSession();
    const mayEnd = reply.gate();
    for (const name of ["First", "Second"]) {
      model.when(isAt(name, 0), edit("a.txt", "two", name));
      model.when(isAt(name, 1), name === "First" ? [mayEnd, "Changed."] : "Changed.");
    }
    model.when(isAt("Third", 0), "Nothing to change.");
    model
      .reply(
        reply.together(
          reply.callScript(...task("First", { background: true })),
          reply.callScript(...task("Second", { background: true })),
          reply.callScript(...task("Third", { background: true })),
        ),
      )
      .reply(reply.call("job", { action: "wait", id: 2 }))
      .reply(reply.call("job", { action: "wait", id: 3 }))
      .reply("They work.");
    await editor.prompt(sessionId, "Go");
    // A task that ends before it is waited for is reported in a message.
    const reports = getRequestText(model.requests.at(-1));
    expect(reports).toContain("The task changed no files of its worktree, which is removed.");
    const { root, branch } = readPlace(reports);
    expect(branch).not.toBe("");
    const name = branch.replace("fairlead/", "");
    await editor.prompt(sessionId, "/merge");
    const listed = agentText(editor.updates(sessionId));
    expect(listed).toMatch(
      /2 worktrees have changes\. Name one\.\n\n- `\/merge \w{8}`: task "First \(@general\)", which still works, in \S+\n- `\/merge \w{8}`: task "Second/,
    );
    const [, first = ""] = /merge (\w{8})`: task "First/.exec(listed) ?? [];
    await editor.prompt(sessionId, `/merge ${first}`);
    expect(agentText(editor.updates(sessionId))).toContain(`The task in fairlead/${first} still works.`);
    mayEnd.release();
    await editor.waitFor(sessionId, (update) =>
      JSON.stringify(update).includes(`on the branch fairlead/${first}`),
    );
    await editor.prompt(sessionId, `/merge ${name}`);
    expect(await text(context, "a.txt")).toBe("one\nSecond\nthree\n");
    await editor.closeSession(sessionId);
    expect(existsSync(root)).toBe(false);
    expect(await branches(context)).toContain(`fairlead/${first}`);
    const doctor = await fairlead(home.path, ["doctor"], { cwd: repository.path });
    expect(doctor.stdout.replaceAll(/\s+/g, " ")).toContain(
      `fairlead run --session ${sessionId} "/merge ${first}"`,
    );
    await editor.load(sessionId);
    await editor.prompt(sessionId, "/merge drop");
    expect(await branches(context)).toContain(`fairlead/${first}`);
    expect(await text(context, "a.txt")).toBe("one\nSecond\nthree\n");
    await editor.closeSession(sessionId);
    expect(await branches(context)).not.toContain(`fairlead/${first}`);
  });
});

test("a task in a worktree is continued there, also after a kill", async () => {
  await story({ files, config, permission: "allow_once" }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model.when(isAt("Change it", 0), write("c.txt", "c\n"));
    const isFirst = (request: ModelRequest) => !getRequestText(request).includes("Go on");
    model.when((request) => isAt("Change it", 1)(request) && isFirst(request), [reply.gate(), "Changed."]);
    model.reply(startTask("Change it"));
    void editor.prompt(sessionId, "Go").catch(() => {});
    await model.request(3);
    await editor.kill();
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    model.reply("I see.");
    await editor.prompt(sessionId, "And now?");
    const report = getRequestText(model.requests.at(-1)).replaceAll("\\n", "\n");
    const { root } = readPlace(report);
    expect(report).toMatch(/\[Tool execution was interrupted\]\n\nChanges are in the worktree /);
    expect(await readFile(join(root, "c.txt"), "utf8")).toBe("c\n");
    await expect(text(context, "c.txt")).rejects.toThrow("ENOENT");
    const [, taskId = ""] = /task_id: (\S+)/.exec(report) ?? [];
    model.reply(
      reply.call("task", { description: "On", prompt: "Go on", subagent_type: "general", task_id: taskId }),
    );
    model
      .reply(reply.call("bash", { command: `${printFolder}; cat c.txt; echo d > d.txt` }))
      .reply("All done.")
      .reply("Good.");
    await editor.prompt(sessionId, "Continue");
    expect(lastResults(context).at(-1)).toMatch(
      /^All done\.\n\nChanges \(c\.txt, d\.txt\) are in the worktree/,
    );
    await editor.prompt(sessionId, "/merge");
    expect([await text(context, "c.txt"), await text(context, "d.txt")]).toEqual(["c\n", "d\n"]);
  });
});

test("a task gets no worktree outside git, in tasks, in ephemeral runs or later", async () => {
  await using outside = await temporaryFolder();
  const boss = { mode: "subagent", description: "Leads.", permission: { task: "allow" } };
  await story({ files, config: { ...config, agent: { boss }, subagent_depth: 2 } }, async (context) => {
    const { editor, model, home, repository } = context;
    const plain = (await editor.newSession({ cwd: outside.path })).sessionId;
    model.reply(startTask("Change it")).reply("I see.");
    await editor.prompt(plain, "Go");
    expect(lastResults(context)[0]).toContain("A worktree needs a git repository");
    const { sessionId } = await editor.newSession();
    model.when(isAt("Lead", 0), startTask("Below"));
    model.when(isAt("Lead", 1), "Led.");
    model.reply(startTask("Lead", { worktree: false, subagent_type: "boss" })).reply("I see.");
    await editor.prompt(sessionId, "Go");
    expect(model.requests.find(isAt("Lead", 1))?.toolResults[0]).toContain("cannot have a worktree");
    const [, taskId = ""] = /task_id: (\S+)/.exec(lastResults(context)[0] ?? "") ?? [];
    model.reply(startTask("Again", { task_id: taskId, subagent_type: "boss" })).reply("I see.");
    await editor.prompt(sessionId, "Go on");
    expect(lastResults(context).at(-1)).toContain("works in the session's folder");
    model.reply(startTask("Alone")).reply("I see.");
    await fairlead(home.path, ["run", "--ephemeral", "Go"], { cwd: repository.path });
    expect(lastResults(context).at(-1)).toContain("A worktree needs a session that is kept");
    expect(await branches(context)).toHaveLength(1);
  });
});
