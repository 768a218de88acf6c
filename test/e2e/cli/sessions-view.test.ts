import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

const attack = "<script>alert(1)</script><img src=https://example.com/x onerror=alert(2)>";

/** A session with thoughts, an edit, a task with a command in it, and an answer that contains HTML. */
async function place() {
  const home = await temporaryFolder({}, "fairlead-home-");
  const repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  await writeConfig(home.path, model.url);
  const prices = { provider: { test: { models: { scripted: { cost: { input: 100, output: 100 } } } } } };
  const env = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify(prices) };
  const usage = reply.usage({ promptTokens: 10_000, completionTokens: 50 });
  model
    .reply(reply.call("edit", { filePath: "a.txt", oldString: "one\n", newString: `two ${attack}\n` }), usage)
    .reply(
      reply.call("task", { description: "Look", prompt: "Look at a.txt.", subagent_type: "general" }),
      usage,
    )
    .reply(reply.call("bash", { command: "cat a.txt" }), usage)
    .reply(reply.say("The task saw it."), usage)
    .reply(
      reply.say(`# Done\n\n${attack}\n\nSee [bad](javascript:alert) and [good](https://example.com/page)`),
      usage,
    );
  const run = (...args: string[]) => fairlead(home.path, args, { cwd: repository.path, env });
  await run("run", "--permission", "allow", `Change it ${attack}`);
  return {
    run,
    cwd: repository.path,
    [Symbol.asyncDispose]: async () => {
      await model.close();
      await home.remove();
      await repository.remove();
    },
  };
}

test("sessions view writes a page without remote content, with diff, task and charts", async () => {
  await using at = await place();
  const { stdout, stderr, exitCode } = await at.run(
    "sessions",
    "view",
    "last",
    "--no-open",
    "-o",
    "page.html",
  );
  expect({ stdout: stdout.trim(), stderr, exitCode }).toEqual({
    stdout: join(at.cwd, "page.html"),
    stderr: "",
    exitCode: 0,
  });
  const page = await readFile(join(at.cwd, "page.html"), "utf8");
  expect(page).toContain(`Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"`);
  expect(page).not.toMatch(/<(script|img|link|iframe|object|form)\b/i);
  expect(page).not.toMatch(/<[a-z][^>]*\s(on\w+|src|srcset)=/i);
  expect(page).not.toMatch(/<[a-z][^>]*javascript:|url\(|@import/i);
  expect([...page.matchAll(/href="([^"#][^"]*)"/g)].map(([, href]) => href)).toEqual([
    "https://example.com/page",
  ]);
  expect(page).toContain("<h1>Done</h1>");
  expect(page).toContain('<span class="removed">-one</span>');
  expect(page).toContain('<span class="added">+two &lt;script&gt;');
  expect(page).toMatch(/<section class="task">[^]*<b>bash<\/b>[^]*The task saw it[^]*<\/section>/);
  expect([...page.matchAll(/<figcaption>([^<]*)/g)].map(([, name]) => name)).toEqual([
    "tokens sent per model call",
    "tokens written per model call",
    "time per model call",
    "cost so far",
  ]);
});

test("sessions view without a file writes to the cache, readable by the user only", async () => {
  await using at = await place();
  const { stdout } = await at.run("sessions", "view", "last", "--no-open");
  expect(stdout.trim()).toMatch(/\/fairlead\/views\/ses_\w+\.html$/);
  expect((await stat(stdout.trim())).mode & 0o777).toBe(0o600);
});

test("sessions view reports that it cannot write a file", async () => {
  await using at = await place();
  const { stderr, exitCode } = await at.run("sessions", "view", "last", "--no-open", "-o", "none/page.html");
  expect(exitCode).toBe(1);
  expect(stderr).toContain("none/page.html cannot be written: ENOENT");
});

test("sessions stats --view draws usage by model or day", async () => {
  await using at = await place();
  const { stdout } = await at.run("sessions", "stats", "--by", "day", "--view", "--no-open");
  const page = await readFile(stdout.trim(), "utf8");
  const today = new Date().toISOString().slice(0, 10);
  expect(page).toContain("<figcaption>tokens by day</figcaption>");
  expect(page).toContain("<figcaption>cost by day</figcaption>");
  expect(page).toMatch(new RegExp(`<title>${today}: [\\d.]+k</title>`));
  expect(page).toContain("<td>total</td>");
});
