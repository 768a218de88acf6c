import { once } from "node:events";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { removeControls } from "../../../src/base/text/controls.ts";
import { createLineQuestions } from "../../../src/cli/terminal/line-questions.ts";
import { sanitizeFor } from "../../../src/cli/terminal/output.ts";
import { Printer } from "../../../src/cli/live/printer.ts";
import { Screen } from "../../../src/cli/live/screen.ts";
import { resumeInputAfterSuspend } from "../../../src/cli/terminal/job-control.ts";
import { styleFor } from "../../../src/cli/terminal/style.ts";
import { processorMs } from "../../support/program/processor-time.ts";

type Chunk = "agent_message_chunk" | "agent_thought_chunk";

/** Returns the output of a turn with these chunks, per stream. */
function printed(chunks: readonly (readonly [Chunk, text: string, messageId: string])[]) {
  const out = { answer: "", progress: "" };
  const screen = new Screen({
    stdout: { write: (text) => (out.answer += text) },
    stderr: { write: (text) => (out.progress += text) },
    env: {},
  });
  const printer = new Printer({ style: styleFor({}, {}), screen });
  for (const [sessionUpdate, text, messageId] of chunks)
    printer.update({ sessionUpdate, messageId, content: { type: "text", text } });
  printer.line("done");
  return out;
}

/** A terminal of 40 columns, and the text written to it. */
function narrowTerminal() {
  let written = "";
  const stream = { isTTY: true, columns: 40, rows: 24, write: (text: string) => (written += text) };
  const screen = new Screen({ stdout: stream, stderr: stream, env: {} });
  return { screen, written: () => written };
}

test("a region is erased line by line, never the screen as a whole", () => {
  const { screen, written } = narrowTerminal();
  screen.draw({ lines: ["one", "two"] });
  screen.draw({ lines: ["three"] });
  screen.draw(undefined);
  expect(written()).toBe("one\ntwo\r\u001b[K\u001b[A\u001b[Kthree\r\u001b[K");
});

test("the reason of a question is wrapped, not truncated", () => {
  const { screen, written } = narrowTerminal();
  const text = "Asked because it cannot be undone: overwrites the history of a remote.";
  new Printer({ style: styleFor({}, {}), screen }).question({
    sessionId: "ses_1",
    options: [],
    toolCall: {
      toolCallId: "1",
      title: "git push --force",
      content: [{ type: "content", content: { type: "text", text } }],
    },
  });
  expect(written()).toContain(
    "  Asked because it cannot be undone:\n  overwrites the history of a remote.\n",
  );
});

describe("the output of a turn", () => {
  test("keeps the blanks between pieces of a thought", () => {
    const thought = "agent_thought_chunk";
    expect(
      printed([
        [thought, "I see ", "1"],
        [thought, "now.", "1"],
      ]).progress,
    ).toBe("I see now.\ndone\n");
  });

  test("ends the answer's last line once", () => {
    const answer = "agent_message_chunk";
    expect(
      printed([
        [answer, "One", "1"],
        [answer, "Two\n", "2"],
      ]).answer,
    ).toBe("One\nTwo\n");
  });
});

test("a terminal gets no control sequences, a pipe gets everything", () => {
  const text = "\u001b]0;title\u0007\u001b[31mred\u001b[0m\r\n\ttab\u009b2J 👩‍🚀";
  expect([sanitizeFor({ isTTY: true }, text), sanitizeFor({}, text)]).toEqual(["red\n\ttab 👩‍🚀", text]);
});

test("finds escape sequences quickly, even if many have no end", () => {
  for (const beginning of [
    "\u001b]",
    "\u001bP",
    "\u001b[1;",
    "\u009b",
    "\u009d",
    "\u001b(",
    "\u001b]\u009b",
  ]) {
    const text = `plain${beginning.repeat(200_000)}`;
    let left = "";
    expect(processorMs(() => (left = removeControls(text)))).toBeLessThan(1_000);
    expect(left).toMatch(/^plain[[1;(]*$/);
  }
});

test("a suspended program that resumes continues to read until it has its answers", async () => {
  const input = new PassThrough();
  input.on("data", () => {});
  const leave = resumeInputAfterSuspend(input);
  input.pause();
  const resumed = once(input, "resume");
  process.emit("SIGCONT");
  await resumed;
  leave();
  expect([process.listenerCount("SIGCONT"), input.isPaused()]).toEqual([0, true]);
});

test("the end of the input accepts no suggestion", async () => {
  const input = new PassThrough();
  const reply: string[] = [];
  const questions = createLineQuestions(input, { write: (text) => reply.push(text) });
  input.end();
  const choices = [{ value: "a", label: "A" }];
  await expect(questions.choose("Which?", choices, { suggestion: "a" })).rejects.toThrow(
    "no answer to: Which? [a]",
  );
  expect(reply).toEqual(["   1. A\n", "Which? [a] ", "\n"]);
});
