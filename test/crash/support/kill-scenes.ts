import { isSummaryRequest } from "../../support/model/small-window.ts";
import { setTimeout as delay } from "node:timers/promises";
import type { ModelRequest, ModelServer, Reply } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";

/** An action of the user during which the program is killed. */
export interface KillScene {
  readonly name: string;
  /** The prompt; undefined if the session is only loaded. */
  readonly prompt: string | undefined;
  /** Returns the model's answer to the step with this number, counted from 0. */
  readonly answer: (step: number) => Reply;
  /** The last text of the conversation when the turn is finished; undefined if it is not shown. */
  readonly end?: RegExp;
}

/** Milliseconds between two words, so that a text takes longer than the period that may be lost. */
const wordPauseMs = 6;

const read = (path: string) => reply.callScript("read", { filePath: path });
const bash = (command: string) => reply.call("bash", { command, description: "Counts" });

/** The prompt of a child session. */
const childWork = "Write three files.";

/** The question for each session after its program was killed. */
export const goOn = "Go on with something small.";

export const killScenes: readonly KillScene[] = [
  { name: "text", prompt: "scene text", answer: () => slowly(reply.say, 70), end: /word69 $/ },
  {
    name: "reasoning",
    prompt: "scene reasoning",
    answer: () => [...slowly(reply.think, 40), ...slowly(reply.say, 20)],
    end: /word19 $/,
  },
  {
    name: "parallel tools",
    prompt: "scene parallel",
    answer: (step) =>
      step < 4
        ? [reply.say("Looking. "), reply.together(read("a.txt"), read("b.txt"), read("c.txt"))]
        : "Done.",
    end: /Done\.$/,
  },
  {
    name: "files",
    prompt: "scene files",
    answer: (step) =>
      step < 3
        ? reply.call("write", { filePath: `new-${step}.txt`, content: "new\n".repeat(50) })
        : "Written.",
    end: /Written\.$/,
  },
  {
    name: "bash",
    prompt: "scene bash",
    answer: (step) => (step < 3 ? bash("for i in 1 2 3 4; do echo $i; sleep 0.02; done") : "Counted."),
    end: /Counted\.$/,
  },
  {
    name: "a task",
    prompt: "scene task",
    answer: (step) =>
      step < 1
        ? reply.call("task", { description: "Write", prompt: childWork, subagent_type: "general" })
        : "Reported.",
    end: /Reported\.$/,
  },
  {
    name: "a question to the user",
    prompt: "scene question",
    answer: (step) => (step < 1 ? [reply.say("May I? "), bash("echo ask-first")] : "Thank you."),
    end: /Thank you\.$/,
  },
  { name: "a command without a model", prompt: "/cost", answer: () => "Never asked." },
  { name: "compaction", prompt: "/compact", answer: () => "Never asked." },
  { name: "load", prompt: undefined, answer: () => "Never asked." },
];

/** Scripts the model's answers for the scenes, the titles, and the question between them. */
export function playScenes(model: ModelServer): void {
  model.when(isSummaryRequest, () => slowly(reply.say, 40));
  model.when(({ userText }) => userText.includes(goOn), "Here I am again.");
  model.when(
    ({ userText }) => userText.includes(childWork),
    (request) =>
      stepOf(request) < 3
        ? reply.call("write", { filePath: `child-${stepOf(request)}.txt`, content: "new\n" })
        : [...slowly(reply.say, 10)],
  );
  for (const { prompt, answer } of killScenes) {
    if (prompt === undefined) continue;
    model.when(
      ({ userText }) => userText.includes(prompt),
      (request) => answer(stepOf(request)),
    );
  }
}

/** Returns the number of the model's answers since the user's last message. */
function stepOf({ messages }: ModelRequest): number {
  const question = messages.findLastIndex(({ role }) => role === "user");
  return messages.slice(question).filter(({ role }) => role === "assistant").length;
}

function slowly(write: (...pieces: string[]) => reply.Step[], words: number): reply.Step[] {
  return Array.from({ length: words }, (_, index) => [...write(`word${index} `), new Pause()]).flat();
}

class Pause extends reply.Gate {
  override pass(): Promise<void> {
    return delay(wordPauseMs);
  }
}
