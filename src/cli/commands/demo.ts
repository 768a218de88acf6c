import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { makeFolder } from "../../base/files/make-folder.ts";
import { findProgram } from "../../workspace/process/find-program.ts";
import type {
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import { type ScriptedRequest, type ScriptedStep, startScriptedModel } from "../../model/scripted.ts";
import { type Editor, startEditor } from "./editor.ts";
import { writeToStderr } from "../terminal/output.ts";
import { Printer } from "../live/printer.ts";
import { Screen } from "../live/screen.ts";
import { type Style, styleFor } from "../terminal/style.ts";

const question = "Read sum.js, fix subtract, and run the tests.";
const longQuestion = "Explain at length how addition works.";
const planQuestion = "How would you add multiplication?";

/** Milliseconds between the scripted model's words, so that streaming is visible. */
const paceMs = 12;

const repository: Readonly<Record<string, string>> = {
  "sum.js": "export const add = (a, b) => a + b;\nexport const subtract = (a, b) => a + b;\n",
  "sum.test.js": [
    'import assert from "node:assert/strict";',
    'import { test } from "node:test";',
    'import { add, subtract } from "./sum.js";',
    "",
    'test("add", () => assert.equal(add(2, 3), 5));',
    'test("subtract", () => assert.equal(subtract(5, 3), 2));',
    "",
  ].join("\n"),
  "package.json": '{ "name": "demo", "private": true, "type": "module" }\n',
};

/**
 * Plays a whole session in a minute: a real ACP client, the real server in its own process, real tools in a real
 * folder, a repository if git is installed. Only the model is a script.
 */
export async function demo(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-demo-"));
  const style = styleFor(process.stdout, process.env);
  const print = (text: string) => process.stdout.write(text);
  const screen = new Screen({ stdout: process.stdout, stderr: process.stdout, env: process.env });
  const printer = new Printer({ style, screen });
  const model = await startScriptedModel((request) => script(request, folder));
  const scene = new Scene({ folder, style, printer });
  try {
    await makeRepository(folder);
    introduce(style, folder, model.url);
    scene.editor = await startEditor({
      env: demoEnvironment(folder, model.url),
      onUpdate: (update) => scene.update(update),
      onPermission: (request) => scene.answer(request),
    });
    await runScenes(scene);
    print(`\n${style.green("Done.")} What you saw was the real program; only the model was a script.\n`);
    print(
      `With a real one: set OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL, and try\n  fairlead run "…"\n`,
    );
    return 0;
  } catch (error) {
    printer.end();
    writeToStderr(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    await scene.editor?.close();
    model.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function runScenes(scene: Scene): Promise<void> {
  await scene.title("A turn: thoughts, a plan, tools, a question, an edit, a command");
  const sessionId = await scene.open();
  expect((await scene.prompt(sessionId, question)) === "end_turn", "the turn ends well");
  const fixed = await readFile(join(scene.folder, "sum.js"), "utf8");
  expect(fixed.includes("a - b"), "the file is changed");
  expect(scene.questions === 1, "one question was asked, for the edit");

  await scene.title("Cancel in the middle, and go on");
  expect(
    (await scene.prompt(sessionId, longQuestion, { cancelAfterChunks: 4 })) === "cancelled",
    "the turn is cancelled",
  );

  await scene.title("Switch from build to plan");
  await scene.agent.request("session/set_mode", { sessionId, modeId: "plan" });
  expect((await scene.prompt(sessionId, planQuestion)) === "end_turn", "the plan is made");
  expect((await readFile(join(scene.folder, "sum.js"), "utf8")) === fixed, "planning changes nothing");

  await scene.title("Close the session and load it again");
  await scene.agent.request("session/close", { sessionId });
  const before = scene.count;
  await scene.agent.request("session/load", { sessionId, cwd: scene.folder, mcpServers: [] });
  scene.printer.end();
  expect(scene.count > before + 10, "the conversation is shown again");
}

/** Client side of the demo: prints and counts updates, and answers questions. */
class Scene {
  readonly folder: string;
  readonly printer: Printer;
  editor: Editor | undefined;
  questions = 0;
  /** Number of received updates. */
  count = 0;
  readonly #style: Style;
  #onChunk: (() => void) | undefined;

  constructor(deps: { folder: string; style: Style; printer: Printer }) {
    this.folder = deps.folder;
    this.printer = deps.printer;
    this.#style = deps.style;
  }

  get agent() {
    if (this.editor === undefined) throw new Error("the server was not started");
    return this.editor.agent;
  }

  async title(text: string): Promise<void> {
    this.printer.line(`\n${this.#style.bold(`== ${text}`)}\n`);
  }

  async open(): Promise<string> {
    const { sessionId } = await this.agent.request("session/new", { cwd: this.folder, mcpServers: [] });
    return sessionId;
  }

  /** Sends a prompt and returns the stop reason. */
  async prompt(
    sessionId: string,
    text: string,
    options: { cancelAfterChunks?: number } = {},
  ): Promise<string> {
    this.printer.line(this.#style.bold(`> ${text}`));
    let left = options.cancelAfterChunks ?? 0;
    this.#onChunk = () => {
      left--;
      if (left !== 0) return;
      this.printer.line(this.#style.yellow("(cancel)"));
      void this.agent.notify("session/cancel", { sessionId });
    };
    const { stopReason } = await this.agent.request("session/prompt", {
      sessionId,
      prompt: [{ type: "text", text }],
    });
    this.#onChunk = undefined;
    this.printer.line(this.#style.dim(`stop reason: ${stopReason}`));
    return stopReason;
  }

  update(update: SessionUpdate): void {
    this.count++;
    this.printer.update(update);
    if (update.sessionUpdate === "agent_message_chunk") this.#onChunk?.();
  }

  async answer(request: RequestPermissionRequest): Promise<RequestPermissionResponse> {
    this.questions++;
    this.printer.question(request);
    this.printer.line(this.#style.yellow("  → Allow once (the demo answers for you)"));
    const option = request.options.find(({ kind }) => kind === "allow_once");
    if (option === undefined) throw new Error("the question has no allow_once");
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  }
}

function expect(condition: boolean, what: string): void {
  if (!condition) throw new Error(`expected that ${what}`);
}

function introduce(style: Style, folder: string, url: string): void {
  const lines = [
    style.bold("Fairlead demo"),
    "A real editor connection to the real server, real tools in a temporary repository.",
    `The model is a ${style.bold("script")} at ${url}: no key, no network, no intelligence.`,
    style.dim(`Repository: ${folder}`),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

async function makeRepository(folder: string): Promise<void> {
  for (const [name, content] of Object.entries(repository)) {
    await makeFolder(dirname(join(folder, name)));
    await writeFile(join(folder, name), content);
  }
  const git = await findProgram("git", process.env);
  if (git !== undefined) await promisify(execFile)(git, ["init", "--quiet"], { cwd: folder });
}

/** Environment with separate folders, so that the demo does not touch the user's configuration and sessions. */
function demoEnvironment(folder: string, url: string): Record<string, string | undefined> {
  const own = join(folder, ".demo");
  const config = {
    model: "demo/scripted",
    permission: { edit: "ask" },
    // Installed language servers would add a question.
    lsp: false,
    provider: {
      demo: {
        name: "Scripted model",
        options: { baseURL: url, apiKey: "none" },
        models: { scripted: { name: "Script", limit: { context: 128_000, output: 8_000 }, reasoning: true } },
      },
    },
  };
  return {
    // The command of the demo needs Node, which a machine with the program's archive may lack.
    PATH: `${process.env["PATH"] ?? ""}${delimiter}${dirname(process.execPath)}`,
    HOME: own,
    XDG_CONFIG_HOME: join(own, "config"),
    XDG_DATA_HOME: join(own, "data"),
    XDG_STATE_HOME: join(own, "state"),
    XDG_CACHE_HOME: join(own, "cache"),
    FAIRLEAD_CONFIG_CONTENT: JSON.stringify(config),
  };
}

function script({ question: asked, step, hasTools }: ScriptedRequest, folder: string): ScriptedStep {
  if (!hasTools) return { text: "Fix subtract in sum.js" };
  if (asked.includes(longQuestion))
    return { text: "Addition takes two numbers and gives their sum. ".repeat(200), paceMs: 40 };
  if (asked.includes(planQuestion)) {
    return { paceMs, text: "1. Export `multiply` from sum.js.\n2. Add a test for it.\n3. Run the tests." };
  }
  return firstTurn(folder)[step] ?? { text: "There is nothing left to do." };
}

function firstTurn(folder: string): ScriptedStep[] {
  const file = join(folder, "sum.js");
  const todos = (done: number) =>
    ["Read sum.js and its test", "Fix subtract", "Run the tests"].map((content, index) => ({
      content,
      priority: "medium",
      status: index < done ? "completed" : index === done ? "in_progress" : "pending",
    }));
  return [
    {
      paceMs,
      thought: "The user wants subtract fixed. First read the code.",
      text: "I read the code and its test first.",
      calls: [
        { tool: "todowrite", input: { todos: todos(0) } },
        { tool: "read", input: { filePath: file } },
        { tool: "read", input: { filePath: join(folder, "sum.test.js") } },
      ],
    },
    {
      paceMs,
      text: "`subtract` adds. I correct it.",
      calls: [
        { tool: "todowrite", input: { todos: todos(1) } },
        {
          tool: "edit",
          input: {
            filePath: file,
            oldString: "subtract = (a, b) => a + b",
            newString: "subtract = (a, b) => a - b",
          },
        },
      ],
    },
    {
      paceMs,
      text: "Now the tests.",
      calls: [
        { tool: "todowrite", input: { todos: todos(2) } },
        { tool: "bash", input: { command: "node --test", description: "Run the tests" } },
      ],
    },
    { paceMs, calls: [{ tool: "todowrite", input: { todos: todos(3) } }] },
    { paceMs, text: "`subtract` in sum.js added instead of subtracting; it is fixed and both tests pass." },
  ];
}
