import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Agent } from "../../agent/agent.ts";
import { renderAgentFile, authorInstructions, parseAgent, type WrittenAgent } from "../../agent/author.ts";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { newMessageId, newPartId, newSessionId } from "../../message/ids.ts";
import type { Message } from "../../message/message.ts";
import { formatModelRef } from "../../model/catalog/catalog.ts";
import type { Model } from "../../model/model.ts";
import { askModel } from "../../context/model-answer.ts";
import { describeRules } from "../../slash-commands/permissions-command.ts";
import type { Project } from "../../conversation/project.ts";
import { resolveModel } from "../chosen-model.ts";
import type { Call } from "../command-line/command.ts";
import { openLocalApp } from "../local-app.ts";
import { nearest } from "../../base/text/nearest.ts";
import { openQuestions } from "../terminal/open-questions.ts";
import { print, printJson, printTable, writeNotice, sanitizeFor, writeToStderr } from "../terminal/output.ts";
import { UsageError } from "../command-line/usage.ts";

/** Lists the agents of a folder. Hidden ones are used internally, such as for titles. */
export async function listAgents(call: Call): Promise<number> {
  const { project } = await openLocalApp(call.text("cwd"));
  for (const problem of project.problems) writeNotice(problem);
  const agents = [...project.agents.values()].filter(({ hidden }) => call.has("all") || !hidden);
  if (call.has("json")) {
    await printJson(agents.map((agent) => toJson(agent, project)));
    return 0;
  }
  await printTable(
    [{ name: "agent" }, { name: "mode" }, { name: "model" }, { name: "from" }, { name: "description" }],
    agents.map((agent) => [
      agent.name,
      describeMode(agent, project),
      describeModel(agent),
      describeOrigin(agent),
      agent.description,
    ]),
  );
  return 0;
}

/** Shows an agent's settings, rules and prompt. */
export async function showAgent(call: Call): Promise<number> {
  const { project } = await openLocalApp(call.text("cwd"));
  const [name = ""] = call.operands;
  const agent = project.agents.get(name);
  if (agent === undefined) {
    const near = nearest(name, [...project.agents.keys()]);
    const hint =
      near === undefined ? `agents: ${[...project.agents.keys()].join(", ")}` : `did you mean ${near}?`;
    throw new UserError(`There is no agent "${name}"; ${hint}`);
  }
  if (call.has("json")) {
    await printJson({
      ...toJson(agent, project),
      prompt: agent.prompt,
      rules: agent.rules,
      limits: agent.limits,
    });
    return 0;
  }
  const facts = [
    ["agent", agent.name],
    ["description", agent.description],
    ["mode", describeMode(agent, project)],
    ["from", describeOrigin(agent)],
    ["model", describeModel(agent)],
    ["variant", agent.variant ?? ""],
    ["temperature", String(agent.temperature ?? "")],
    ["steps", String(agent.steps ?? "")],
  ];
  await printTable(
    [{ name: "what" }, { name: "value" }],
    facts.filter(([, value]) => value !== ""),
  );
  await print(`\nRules (the last match wins):\n${describeRules(agent.rules).join("\n")}`);
  for (const limit of agent.limits ?? []) await print(`\nLimits:\n${describeRules(limit).join("\n")}`);
  if (agent.prompt !== undefined)
    await print(`\nPrompt:\n${sanitizeFor(process.stdout, agent.prompt.trim())}`);
  return 0;
}

/** Lets a model write an agent from a description, and stores it as a file. */
export async function createAgent(call: Call): Promise<number> {
  const { app, project } = await openLocalApp(call.text("cwd"));
  const given = call.text("name");
  const isForced = call.has("force");
  if (given !== undefined) {
    if (!isName(given)) throw new UsageError(describeBadName(given), call.name);
    assertFree(given, project, isForced);
  }
  const description = call.operands.join(" ") || (await askForDescription());
  const model = resolveModel(call, project);
  process.stderr.write(`Asking ${formatModelRef(model.ref)} …\n`);
  const written = await generateAgent(description, model, project);
  const name = given ?? written.name;
  if (!isName(name))
    throw new UserError(`${describeBadName(name)} The model chose it; --name NAME gives another.`);
  assertFree(name, project, isForced);
  const head = {
    description: written.description,
    mode: call.text("mode") ?? "all",
    model: call.has("model") ? formatModelRef(model.ref) : undefined,
    denied: call.texts("deny"),
  };
  const text = renderAgentFile(head, written.prompt);
  if (call.has("print")) {
    process.stdout.write(text);
    return 0;
  }
  const { worktree, cwd } = project.workspace;
  const folder = call.has("global") ? app.folders.config : join(worktree ?? cwd, ".fairlead");
  const path = join(folder, "agents", `${name}.md`);
  await writeNew(path, text, isForced);
  await print(path);
  writeToStderr(`${name}: ${written.description}`);
  return 0;
}

async function askForDescription(): Promise<string> {
  const questions = await openQuestions();
  try {
    return await questions.text("What is the agent for?");
  } finally {
    questions.close();
  }
}

const modelTimeoutMs = 180_000;

/** Low, so that the same description gives a similar agent. */
const writeTemperature = 0.3;

async function generateAgent(
  description: string,
  model: Model,
  { models, retryPolicy, agents }: Project,
): Promise<WrittenAgent> {
  const signal = AbortSignal.timeout(modelTimeoutMs);
  const taken = `Names that are taken: ${[...agents.keys()].join(", ")}. Choose another.`;
  const request = {
    model,
    system: [authorInstructions, taken],
    messages: [createUserMessage(description)],
    tools: [],
    temperature: writeTemperature,
    signal,
  };
  const answer = await askModel(
    { models, retryPolicy, onRetry: async (error) => writeNotice(error.message) },
    request,
  );
  if (answer.outcome === "failed")
    throw new UserError(
      signal.aborted ? `No answer within ${modelTimeoutMs / 1000} s.` : answer.error.message,
    );
  const written = parseAgent(answer.text);
  if (written === undefined)
    throw new UserError(`The model did not answer with an agent but: ${excerpt(answer.text.trim(), 200)}`);
  return written;
}

function createUserMessage(text: string): Message {
  return {
    info: {
      id: newMessageId(),
      sessionId: newSessionId(),
      role: "user",
      time: { created: Date.now() },
      agent: "author",
    },
    parts: [{ id: newPartId(), type: "text", text }],
  };
}

async function writeNew(path: string, text: string, isForced: boolean): Promise<void> {
  try {
    await makeFolder(dirname(path));
    await writeFile(path, text, { flag: isForced ? "w" : "wx" });
  } catch (error) {
    const reason =
      codeOf(error) === "EEXIST"
        ? `${path} already exists; --force overwrites it.`
        : `${path}: ${messageOf(error)}`;
    throw new UserError(reason, { cause: error });
  }
}

/** Throws when the name is taken. --force replaces the user's agents, but not built-in ones. */
function assertFree(name: string, { agents }: Project, isForced: boolean): void {
  const agent = agents.get(name);
  if (agent === undefined) return;
  if (agent.native)
    throw new UserError(
      `The built-in agent ${name} cannot be replaced. Choose another name with --name NAME, or change its settings under agent.${name} in the configuration.`,
    );
  if (!isForced)
    throw new UserError(
      `The agent ${name} already exists. Choose another name with --name NAME; --force overwrites it.`,
    );
}

/** Whether a text is a valid agent name: a relative path that stays inside the agents' folder. */
function isName(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]*(\/[a-z0-9][a-z0-9_-]*)*$/.test(name);
}

function describeBadName(name: string): string {
  return `"${name}" is not a valid agent name: use lower-case letters, digits and dashes, with / between folders.`;
}

function toJson(agent: Agent, project: Project) {
  const { name, description, mode, hidden, model, variant, temperature, topP, steps, color, native } = agent;
  const isDefault = name === project.defaultAgent;
  const settings = { variant, temperature, topP, steps, color };
  return {
    name,
    description,
    mode,
    hidden,
    isDefault,
    native,
    model: model && formatModelRef(model),
    ...settings,
  };
}

function describeMode({ name, mode, hidden }: Agent, { defaultAgent }: Project): string {
  return [mode, ...(name === defaultAgent ? ["default"] : []), ...(hidden ? ["hidden"] : [])].join(", ");
}

const describeModel = ({ model }: Agent): string => (model === undefined ? "" : formatModelRef(model));

const describeOrigin = ({ native }: Agent): string => (native ? "built in" : "yours");
