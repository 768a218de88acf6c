import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { client, ndJsonStream, type SessionConfigOption, type SessionUpdate } from "@agentclientprotocol/sdk";
import { diffLines } from "diff";
import { startScriptedModel } from "../../src/model/scripted.ts";
import { createSumsProject } from "./sums-project.ts";
import { colors, drawText, svgDocument, wrapText } from "./svg.ts";

// Plays a turn through ACP with the built program and a scripted model, and draws what the editor received as a panel:
// all texts, titles, states and choices are the program's, the frame is the drawing's.

const prompt = "subtract is wrong. Fix it and run the tests.";
const steps = [
  {
    thought: "I read the code and its test first.",
    calls: [{ tool: "read", input: { filePath: "sum.js" } }],
  },
  {
    text: "`subtract` adds its arguments. I correct it and run the tests.",
    calls: [
      {
        tool: "edit",
        input: { filePath: "sum.js", oldString: "(a, b) => a + b;\n", newString: "(a, b) => a - b;\n" },
      },
      { tool: "bash", input: { command: "node --test", description: "Run the tests" } },
    ],
  },
  { text: "`subtract` subtracts now, and both tests pass." },
];
const projectTest =
  'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { add, subtract } from "./sum.js";\n\ntest("add", () => assert.equal(add(2, 3), 5));\ntest("subtract", () => assert.equal(subtract(5, 3), 2));\n';
const root = join(import.meta.dirname, "../..");

interface Transcript {
  readonly updates: readonly SessionUpdate[];
  readonly options: readonly SessionConfigOption[];
}

async function play(): Promise<Transcript> {
  const all = mkdtempSync(join(tmpdir(), "fairlead-picture-"));
  const place = join(all, "sums");
  createSumsProject(place, projectTest);
  const model = await startScriptedModel(({ step, hasTools }) =>
    hasTools ? (steps[step] ?? { text: "" }) : { text: "Fix subtract" },
  );
  const config = {
    model: "local/coder",
    lsp: false,
    provider: {
      local: {
        name: "Local",
        options: { baseURL: model.url, apiKey: "none" },
        models: { coder: { name: "Coder", limit: { context: 128_000, output: 8_000 } } },
      },
    },
  };
  const env = {
    PATH: process.env["PATH"],
    HOME: join(all, "home"),
    FAIRLEAD_CONFIG_CONTENT: JSON.stringify(config),
  };
  // A user who has read the message of the first turn.
  const state = join(env.HOME, ".local/state/fairlead");
  mkdirSync(state, { recursive: true });
  writeFileSync(join(state, "defaults-explained"), "");
  const child = spawn(process.execPath, [join(root, "bin/fairlead.js"), "acp"], {
    stdio: ["pipe", "pipe", "inherit"],
    env,
  });
  const updates: SessionUpdate[] = [];
  try {
    const { agent } = client({ name: "picture" })
      .onNotification("session/update", ({ params }) => void updates.push(params.update))
      .connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
    await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const session = await agent.request("session/new", { cwd: place, mcpServers: [] });
    await agent.request("session/prompt", {
      sessionId: session.sessionId,
      prompt: [{ type: "text", text: prompt }],
    });
    return { updates, options: session.configOptions ?? [] };
  } finally {
    child.stdin.end();
    model.close();
    rmSync(all, { recursive: true, force: true, maxRetries: 3 });
  }
}

type Call = Extract<SessionUpdate, { sessionUpdate: "tool_call" }>;
type Block = { kind: "text" | "thought"; text: string } | { kind: "call"; call: Call };

/** Joins chunks of text, and the updates of each call. */
function blocksOf(updates: readonly SessionUpdate[]): Block[] {
  const blocks: Block[] = [];
  const calls = new Map<string, Extract<Block, { kind: "call" }>>();
  for (const update of updates) {
    const last = blocks.at(-1);
    if (update.sessionUpdate === "tool_call") {
      const block: Extract<Block, { kind: "call" }> = { kind: "call", call: { ...update } };
      calls.set(update.toolCallId, block);
      blocks.push(block);
    } else if (update.sessionUpdate === "tool_call_update") {
      const given = Object.entries(update).filter(([, value]) => value !== undefined && value !== null);
      const block = calls.get(update.toolCallId);
      if (block !== undefined) Object.assign(block.call, Object.fromEntries(given));
    } else if (
      update.sessionUpdate === "agent_message_chunk" ||
      update.sessionUpdate === "agent_thought_chunk"
    ) {
      if (update.content.type !== "text") continue;
      const kind = update.sessionUpdate === "agent_message_chunk" ? "text" : "thought";
      if (last?.kind === kind) last.text += update.content.text;
      else blocks.push({ kind, text: update.content.text });
    }
  }
  return blocks;
}

const [width, left, size, lineHeight] = [560, 20, 13, 19];
const inner = width - 2 * left;
const marks = { pending: "○", in_progress: "◐", completed: "✓", failed: "✗" } as const;

function draw({ updates, options }: Transcript): string {
  const parts: string[] = [];
  let y = 16;
  const box = (height: number, fill: string) =>
    parts.push(
      `<rect x="${left}" y="${y}" width="${inner}" height="${height}" rx="6" fill="${fill}" stroke="${colors.border}"/>`,
    );
  const add = (text: string, at: { x?: number; color?: string; isMono?: boolean; isBold?: boolean } = {}) =>
    parts.push(drawText(text, { x: left, y: y + 14, size, ...at }));
  const paragraph = (text: string, color?: string) => {
    for (const line of wrapText(text.trim(), 78)) {
      add(line.replaceAll("`", ""), { color });
      y += lineHeight;
    }
    y += 8;
  };

  box(34, colors.raised);
  parts.push(drawText(prompt, { x: left + 12, y: y + 22, size }));
  y += 48;
  for (const block of blocksOf(updates)) {
    if (block.kind !== "call") {
      paragraph(block.text, block.kind === "thought" ? colors.muted : undefined);
      continue;
    }
    const { title, status, content } = block.call;
    const lines = (content ?? []).flatMap((item) => shownLines(item));
    box(30 + (lines.length === 0 ? 0 : lines.length * 17 + 10), colors.background);
    const color = status === "failed" ? colors.red : colors.green;
    parts.push(drawText(marks[status ?? "pending"], { x: left + 10, y: y + 20, size, color }));
    parts.push(drawText(title, { x: left + 30, y: y + 20, size }));
    y += 32;
    for (const { text, background } of lines) {
      if (background !== undefined)
        parts.push(`<rect x="${left + 1}" y="${y}" width="${inner - 2}" height="17" fill="${background}"/>`);
      parts.push(drawText(text, { x: left + 12, y: y + 13, size: 12, isMono: true }));
      y += 17;
    }
    y += lines.length === 0 ? 8 : 18;
  }
  y += 4;
  box(64, colors.raised);
  parts.push(drawText("Message Fairlead", { x: left + 12, y: y + 24, size, color: colors.muted }));
  let x = left + 12;
  for (const option of options) {
    const label = chosenName(option);
    if (label === undefined) continue;
    parts.push(drawText(`${label} ⌄`, { x, y: y + 52, size: 12, color: colors.muted }));
    x += (label.length + 2) * 6.6 + 14;
  }
  y += 80;
  return svgDocument(
    "Fairlead in an editor's panel: a turn with a read, an edit and a command",
    width,
    y,
    parts.join("\n"),
  );
}

function chosenName(option: SessionConfigOption): string | undefined {
  if (option.type !== "select") return undefined;
  const choices = option.options.flatMap((choice) => ("options" in choice ? choice.options : [choice]));
  return choices.find(({ value }) => value === option.currentValue)?.name;
}

/** The lines of a card: a diff's changes, or the beginning of an output. */
function shownLines(item: NonNullable<Call["content"]>[number]): { text: string; background?: string }[] {
  if (item.type === "diff")
    return diffLines(item.oldText ?? "", item.newText).flatMap(({ value, added, removed }) => {
      const sign = added ? "+" : removed ? "-" : " ";
      const background = added ? colors.addedLine : removed ? colors.removedLine : undefined;
      return value
        .trimEnd()
        .split("\n")
        .map((line) => ({ text: `${sign} ${line}`, background }));
    });
  if (item.type !== "content" || item.content.type !== "text") return [];
  const lines = item.content.text
    .replaceAll(/^```\w*$/gm, "")
    .replaceAll("`", "")
    .trim()
    .split("\n");
  const most = 8;
  const shown = lines.slice(0, most).map((text) => ({ text: text.slice(0, 68) }));
  return lines.length > most ? [...shown, { text: `… ${lines.length - most} more lines` }] : shown;
}

writeFileSync(join(root, "docs/pictures/editor.svg"), draw(await play()));
