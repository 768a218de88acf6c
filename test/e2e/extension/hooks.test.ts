import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Settings with one hook for an event. */
const settings = (event: string, command: string, more: object = {}) =>
  JSON.stringify({ hooks: { [event]: [{ ...more, hooks: [{ type: "command", command }] }] } });

/** Prints a decision about a call. */
const decide = (decision: object) =>
  `echo '${JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", ...decision } })}'`;

const bash = (command: string) => reply.call("bash", { command });

describe("hooks before and after calls", () => {
  test("get calls in Claude Code's terms, refuse with exit code 2 and object afterwards", async () => {
    const guard =
      'input=$(cat); printf "%s\\n" "$input" >> "$CLAUDE_PROJECT_DIR/calls"; case "$input" in *forbidden*) echo "use another name" >&2; exit 2;; esac';
    const hooks = {
      PreToolUse: [{ matcher: "Bash|Write|Edit", hooks: [{ type: "command", command: guard, timeout: 30 }] }],
      PostToolUse: [
        {
          matcher: "Write",
          hooks: [
            { type: "command", command: 'cat >> "$CLAUDE_PROJECT_DIR/after"; echo "no tests" >&2; exit 2' },
          ],
        },
      ],
      SessionStart: [{ hooks: [{ type: "command", command: "exit 1" }] }],
    };
    const homeFiles = { ".claude/settings.json": JSON.stringify({ hooks, model: "opus" }) };
    await story({ homeFiles, files: { "a.txt": "a\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const patch = "*** Begin Patch\n*** Add File: forbidden.txt\n+c\n*** End Patch";
      model
        .reply(bash("echo forbidden"))
        .reply(reply.call("write", { filePath: "new.txt", content: "b\n" }))
        .reply(reply.call("apply_patch", { patchText: patch }))
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const results = model.requests.slice(1).map(({ toolResults }) => toolResults.at(-1));
      expect(results[0]).toBe("Not run. A hook refused this call: use another name");
      expect(results[1]).toContain("[A hook objects: no tests]");
      expect(results[2]).toContain("use another name");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "failed",
        "completed",
        "failed",
        "completed",
      ]);
      const lines = (await readFile(join(repository.path, "calls"), "utf8")).trim().split("\n");
      const [first, second, third] = lines.map((line) => toObject(JSON.parse(line)));
      expect(lines).toHaveLength(3);
      expect(first).toMatchObject({
        session_id: sessionId,
        cwd: repository.path,
        permission_mode: "default",
        hook_event_name: "PreToolUse",
        tool_name: "Bash",
        tool_input: { command: "echo forbidden" },
      });
      const file_path = join(repository.path, "new.txt");
      expect(second).toMatchObject({ tool_name: "Write", tool_input: { file_path, content: "b\n" } });
      expect(third).toMatchObject({ tool_name: "Write", tool_input: { content: "c\n" } });
      const after = await readFile(join(repository.path, "after"), "utf8");
      expect(JSON.parse(after)).toMatchObject({
        hook_event_name: "PostToolUse",
        tool_response: { success: true, filePath: file_path },
      });
    });
  });

  test("answer with JSON: ask, deny, new arguments, and an allow that overrides no rule", async () => {
    const command = (decision: object) => ({ type: "command", command: decide(decision) });
    const group = (matcher: string, decision: object) => ({ matcher, hooks: [command(decision)] });
    const config = {
      permission: { edit: "ask", read: { "secret.txt": "deny" }, bash: "allow" },
      hooks: {
        PreToolUse: [
          group("Read", { permissionDecision: "allow" }),
          group("Write", { permissionDecision: "allow" }),
          group("Grep", { permissionDecision: "ask" }),
          group("Glob", { permissionDecision: "deny", permissionDecisionReason: "too slow" }),
          group("Bash", { updatedInput: { command: "echo changed" }, additionalContext: "Mind the gap." }),
        ],
      },
    };
    const files = { "secret.txt": "secret\n" };
    await story({ config, files, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "secret.txt" }))
        .reply(reply.call("write", { filePath: "a.txt", content: "a\n" }))
        .reply(reply.call("grep", { pattern: "x" }))
        .reply(reply.call("glob", { pattern: "*" }))
        .reply(bash("echo first"))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const results = model.requests.slice(1).map(({ toolResults }) => toolResults.at(-1));
      expect(results[0]).toContain("A rule forbids read");
      expect(results[3]).toBe("Not run. A hook refused this call: too slow");
      expect(results[4]).toBe("changed\n\nMind the gap.");
      // The hook allowed the write, and the search needed permission because of it.
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.kind)).toEqual(["search"]);
    });
  });

  test("that fail are reported once and decide nothing", async () => {
    const hooks = {
      PreToolUse: [{ hooks: [{ type: "command", command: "echo broken >&2; exit 1" }] }],
      PostToolUse: [{ matcher: "(", hooks: [{ type: "command", command: "exit 2" }] }],
    };
    await story({ config: { hooks } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("echo one")).reply(bash("echo two")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[2]?.toolResults.at(-1)).toBe("two");
      const shown = thoughtText(editor.updates(sessionId));
      expect(shown.match(/exit code 1: broken/g)).toHaveLength(1);
      expect(shown).toContain('The matcher "(" of a hook is ignored');
    });
  });
});

describe("hooks at the end of a turn", () => {
  test("make the model continue until they agree, with the conversation in a file", async () => {
    const command =
      'input=$(cat); path=$(echo "$input" | sed "s/.*\\"transcript_path\\":\\"\\([^\\"]*\\)\\".*/\\1/"); ' +
      'cp "$path" "$CLAUDE_PROJECT_DIR/conversation"; echo "$input" >> "$CLAUDE_PROJECT_DIR/stops"; ' +
      'case "$input" in *tested*) ;; *) echo \'{"decision":"block","reason":"Run the tests."}\' ;; esac';
    const homeFiles = { ".claude/settings.json": settings("Stop", command) };
    await story({ homeFiles }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Done.").reply("All tested.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests).toHaveLength(2);
      expect(model.requests[1]?.userText).toContain("Run the tests.");
      const stops = (await readFile(join(repository.path, "stops"), "utf8")).trim().split("\n");
      expect(stops.map((line) => toObject(JSON.parse(line)))).toMatchObject([
        { stop_hook_active: false, last_assistant_message: "Done." },
        { stop_hook_active: true, last_assistant_message: "All tested." },
      ]);
      expect(await readFile(join(repository.path, "conversation"), "utf8")).toContain(
        '"message":{"role":"assistant","content":[{"type":"text","text":"All tested."}]}',
      );
    });
  });

  test("cannot continue a turn forever", async () => {
    const homeFiles = { ".claude/settings.json": settings("Stop", "echo never >&2; exit 2") };
    await story({ homeFiles }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (let answer = 0; answer < 6; answer++) model.reply(`Answer ${answer}.`);
      await editor.prompt(sessionId, "Go");
      expect(model.requests).toHaveLength(6);
      expect(thoughtText(editor.updates(sessionId))).toContain("which ends at a limit: never");
    });
  });
});

describe("hooks of a project", () => {
  test("run only after the user trusts them, and consent covers their scripts", async () => {
    const files = {
      ".claude/settings.json": settings("PreToolUse", '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'),
      ".claude/settings.local.json": settings("PreToolUse", "echo local >> ran"),
      ".claude/hooks/guard.sh": "#!/bin/sh\necho guard >> ran\n",
    };
    const config = { permission: { edit: "allow" } };
    await story({ config, files, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const script = join(repository.path, ".claude/hooks/guard.sh");
      await chmod(script, 0o755);
      const { sessionId } = await editor.newSession();
      model.reply(bash("cat ran")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const asked = JSON.stringify(editor.permissionRequests[0]);
      expect(asked).toContain("guard.sh");
      expect(asked).toContain("echo local");
      expect(model.requests[1]?.toolResults.at(-1)).toContain("No such file");
      editor.permission = "allow_once";
      const { sessionId: later } = await editor.newSession();
      model.reply(bash("sort ran")).reply("Done.");
      await editor.prompt(later, "Go");
      expect(model.requests.at(-1)?.toolResults.at(-1)).toBe("guard\nlocal");
      const count = editor.permissionRequests.length;
      // The model may not change the scripts of hooks.
      model.reply(reply.call("write", { filePath: ".claude/hooks/other.sh", content: "x\n" })).reply("Done.");
      await editor.prompt(later, "Go");
      expect(editor.permissionRequests.slice(count).map(({ toolCall }) => toolCall.title)).toEqual([
        "Write .claude/hooks/other.sh (new)",
      ]);
    });
  });
});
