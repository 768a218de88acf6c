import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ScriptedStep, startScriptedModel } from "../../src/model/scripted.ts";
import { createSumsProject } from "./sums-project.ts";

// Captures what people meet first in a terminal of 60 and of 120 columns, as text. Needs tmux.

const root = join(import.meta.dirname, "../..");
const target = join(root, "docs/pictures/terminal");
const widths = [60, 120];
const rows = 45;
/** Time for a text to appear. */
const limitMs = 30_000;

/** What is typed, and the text that is waited for first. */
interface Key {
  readonly after: string;
  readonly keys: readonly string[];
}

interface Scene {
  readonly name: string;
  readonly command: string;
  readonly steps: readonly ScriptedStep[];
  readonly config?: object;
  readonly typed: readonly Key[];
  /** The text with which the capture is complete. */
  readonly end: string;
}

const projectTest =
  'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { subtract } from "./sum.js";\n\ntest("subtract", () => assert.equal(subtract(5, 3), 2));\n';

const fix: ScriptedStep[] = [
  { text: "I read the code first.", calls: [{ tool: "read", input: { filePath: "sum.js" } }] },
  {
    text: "`subtract` adds its arguments. I correct it and run the tests.",
    calls: [
      { tool: "edit", input: { filePath: "sum.js", oldString: "=> a + b;", newString: "=> a - b;" } },
      { tool: "bash", input: { command: "node --test", description: "Run the tests" } },
    ],
  },
  { text: "`subtract` subtracts now, and the test passes." },
];

const choose: ScriptedStep[] = [
  {
    calls: [
      {
        tool: "question",
        input: {
          questions: [
            {
              question: "Which database should the new service use?",
              header: "Database",
              options: [
                { label: "PostgreSQL", description: "Runs on the existing cluster, with backups" },
                { label: "SQLite", description: "One file, nothing to operate" },
              ],
            },
          ],
        },
      },
    ],
  },
  { text: "PostgreSQL it is." },
];

const scenes: readonly Scene[] = [
  {
    name: "run",
    command: 'fairlead run "subtract is wrong. Fix it and run the tests."',
    steps: fix,
    typed: [],
    end: "[ended]",
  },
  {
    name: "permission",
    command: 'fairlead run "Push the fix."',
    steps: [
      { calls: [{ tool: "bash", input: { command: "git push --force origin main" } }] },
      { text: "Done." },
    ],
    typed: [],
    end: "cannot be undone",
  },
  {
    name: "question",
    command: 'fairlead run "Add a service that stores orders."',
    steps: choose,
    typed: [],
    end: "SQLite",
  },
  { name: "setup", command: "fairlead setup", steps: [], typed: [], end: "to select" },
  {
    name: "setup-key",
    command: "fairlead setup",
    steps: [],
    typed: [
      { after: "to select", keys: ["anthropic"] },
      { after: "Search: anthropic", keys: ["Enter"] },
    ],
    end: "key",
  },
  { name: "doctor", command: "fairlead doctor --offline", steps: [], typed: [], end: "[ended]" },
];

mkdirSync(target, { recursive: true });
for (const scene of scenes)
  for (const width of widths)
    writeFileSync(join(target, `${scene.name}-${width}.txt`), await capture(scene, width));

async function capture({ command, steps, config = {}, typed, end }: Scene, width: number): Promise<string> {
  const all = realpathSync(mkdtempSync(join(tmpdir(), "fairlead-capture-")));
  const place = join(all, "sums");
  createSumsProject(place, projectTest);
  const model = await startScriptedModel(({ step, hasTools }) =>
    hasTools ? (steps[step] ?? { text: "" }) : { text: "Fix subtract" },
  );
  const socket = `fairlead-${process.pid}-${width}`;
  const tmux = (...args: string[]) => execFileSync("tmux", ["-L", socket, ...args], { encoding: "utf8" });
  const program = `${process.execPath} ${join(root, "bin/fairlead.js")}`;
  const variables = {
    HOME: join(all, "home"),
    PATH: process.env["PATH"] ?? "",
    TERM: "screen-256color",
    FAIRLEAD_CONFIG_CONTENT: JSON.stringify({ ...createConfig(model.url), ...config }),
  };
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`);
  // The last word is written in two parts, so that it is not found in the command line.
  const line = `cd ${quote(place)} && env -i ${settings.join(" ")} ${command.replace("fairlead", program)}; printf '[%s]\\n' ended; exec cat`;
  try {
    tmux("-f", "/dev/null", "new-session", "-d", "-x", String(width), "-y", String(rows), line);
    const screen = () => tmux("capture-pane", "-p", "-S", "-200");
    for (const { after, keys } of typed) {
      await shows(screen, after);
      tmux("send-keys", ...keys);
    }
    const shown = await shows(screen, end);
    return clean(shown, { [all]: "~", [model.url]: "http://127.0.0.1:8080/v1", [root]: "/opt/fairlead" });
  } finally {
    tmux("kill-server");
    model.close();
    rmSync(all, { recursive: true, force: true, maxRetries: 3 });
  }
}

function createConfig(url: string): object {
  return {
    model: "local/coder",
    lsp: false,
    provider: {
      local: {
        name: "Local",
        options: { baseURL: url, apiKey: "none" },
        models: { coder: { name: "Coder", limit: { context: 128_000, output: 8_000 } } },
      },
    },
  };
}

/** Waits until the screen has the text and does not change any more. */
async function shows(screen: () => string, text: string): Promise<string> {
  const deadline = performance.now() + limitMs;
  let before = "";
  for (;;) {
    const now = screen();
    if (now.includes(text) && now === before) return now;
    before = now;
    if (performance.now() > deadline) throw new Error(`${text} did not appear:\n${now}`);
    await sleep(300);
  }
}

/** Replaces what differs from run to run. */
function clean(text: string, names: Readonly<Record<string, string>>): string {
  let cleaned = text.replace("[ended]", "");
  for (const [name, shown] of Object.entries(names)) cleaned = cleaned.replaceAll(name, shown);
  const lines = cleaned
    .replaceAll(/ses_\w+(\n\w+)?/g, "ses_01a2")
    .replaceAll(/\b\d+(\.\d+)? ?(s|ms)\b/g, "1 $2")
    .replaceAll(/duration_ms [\d.]+/g, "duration_ms 100.5")
    .split("\n")
    .map((line) => line.trimEnd());
  return `${lines.join("\n").trim()}\n`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
