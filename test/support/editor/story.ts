import { afterAll, expect } from "vitest";
import { plain } from "./clients.ts";
import { Editor, type EditorOptions } from "./editor.ts";
import { startModelServer, type ModelServer } from "../model/model-server.ts";
import type { Step } from "../model/reply.ts";
import { findLeftoversWith } from "../program/processes.ts";
import {
  gitRepository,
  temporaryFolder,
  writeConfig,
  type Files,
  type GitRepository,
  type ModelLimit,
  type TemporaryFolder,
} from "../temp.ts";
import { toolCalls } from "../transcript.ts";

export interface StoryOptions extends Omit<EditorOptions, "home" | "cwd"> {
  /** The repository's first commit. */
  files?: Files;
  /** Additional files in the home folder. */
  homeFiles?: Files;
  /** Merged into the global configuration. */
  config?: Record<string, unknown>;
  /** The scripted model's context window, if not the default. */
  limit?: ModelLimit;
  /** Additional models of the scripted provider, as the configuration has them. */
  models?: Readonly<Record<string, unknown>>;
  /** False leaves `initialize` to the story. */
  initialize?: boolean;
}

export interface StoryContext {
  editor: Editor;
  model: ModelServer;
  repository: GitRepository;
  home: TemporaryFolder;
}

/** Idle agents of one test file. */
const idleLimit = 3;

type StoryScript = (context: StoryContext) => Promise<void>;

/**
 * Plays a story with a real agent, a scripted model and a real repository. At its end the model's requests, the
 * messages and the remaining processes are checked; a failure prints the messages.
 */
export async function story(options: StoryOptions, play: StoryScript): Promise<void> {
  await using repository = await gitRepository(options.files);
  await playToEnd(await open(options, repository), play);
}

/**
 * Plays the stories of a test file like `story`, but stories with the same configuration and client share one
 * agent, one after the other. Each has its own repository, user, model and record, starts without sessions,
 * leaves none, and is checked at its end. The agent's exit is checked after the last story. A story that ends
 * the agent or writes into its home is the last one of that agent.
 */
export function storiesOfOneAgent(): typeof story {
  const idle = new Map<string, StoryContext>();
  afterAll(async () => {
    for (const context of idle.values()) await playToEnd(context);
  });
  return async (options, play) => {
    if (options.initialize === false) {
      await story(options, play);
      return;
    }
    const key = getStartKey(options);
    await using repository = await gitRepository(options.files);
    const before = idle.get(key);
    idle.delete(key);
    const context = before ? await follow(before, options, repository) : await open(options, repository);
    if (await playNext(context, play)) idle.set(key, context);
    const [oldest, ...rest] = idle;
    if (oldest === undefined || rest.length < idleLimit) return;
    idle.delete(oldest[0]);
    await playToEnd(oldest[1]);
  };
}

/** Starts a second client with its own agent on the story's home, and checks its messages at the end. */
export async function withSecond(
  { home, repository }: StoryContext,
  play: (second: Editor) => Promise<void>,
): Promise<void> {
  const second = new Editor({ home: home.path, cwd: repository.path });
  try {
    await second.initialize();
    await play(second);
  } finally {
    await second.close();
  }
  second.assertClean();
}

/** Runs each call in one step of a turn, and each function between the turns. Returns what the model read of each call. */
export async function playCalls(
  { editor, model }: StoryContext,
  ...steps: (Step | (() => Promise<void> | void))[]
): Promise<string[]> {
  const { sessionId } = await editor.newSession();
  const results: string[] = [];
  for (const step of steps) {
    if (typeof step === "function") {
      await step();
      continue;
    }
    model.reply(step).reply("Next.");
    await editor.prompt(sessionId, "Go on");
    results.push(...(model.requests.at(-1)?.toolResults ?? []));
  }
  expect(toolCalls(editor.updates(sessionId))).toHaveLength(results.length);
  return results;
}

/** Options for starting the story's agent. */
const getStartKey = ({ client = plain(), homeFiles, env, program }: StoryOptions): string =>
  JSON.stringify([client.info, client.capabilities, homeFiles, env, program]);

async function open(options: StoryOptions, repository: GitRepository): Promise<StoryContext> {
  const home = await temporaryFolder(options.homeFiles, "fairlead-home-");
  const model = await startModelServer();
  await writeConfig(home.path, model.url, options.config, options.limit, options.models);
  const editor = new Editor({ ...options, home: home.path, cwd: repository.path });
  const context = { editor, model, repository, home };
  if (options.initialize === false) return context;
  try {
    await editor.initialize();
    return context;
  } catch (error) {
    report(context);
    await close(context);
    throw error;
  }
}

/** The configuration applies from the next session on. */
async function follow(
  { editor, model, home }: StoryContext,
  options: StoryOptions,
  repository: GitRepository,
): Promise<StoryContext> {
  await writeConfig(home.path, model.url, options.config, options.limit, options.models);
  editor.renew({ ...options, cwd: repository.path });
  return { editor, model: model.successor(), repository, home };
}

/** Whether the agent is ready for another story: it runs, without sessions, in an unchanged home. */
async function playNext(context: StoryContext, play: StoryScript): Promise<boolean> {
  const { editor, home } = context;
  let isHomeChanged = false;
  const write = (files: Files) => {
    isHomeChanged = true;
    return home.write(files);
  };
  try {
    await play({ ...context, home: { ...home, write } });
    if (editor.isOpen && !isHomeChanged) {
      await editor.deleteSessions();
      await assertClean(context, editor.pid);
      return true;
    }
    await end(context);
  } catch (error) {
    report(context);
    await close(context);
    throw error;
  }
  await close(context);
  return false;
}

async function playToEnd(context: StoryContext, play: StoryScript = async () => {}): Promise<void> {
  try {
    await play(context);
    await end(context);
  } catch (error) {
    report(context);
    throw error;
  } finally {
    await close(context);
  }
}

async function end(context: StoryContext): Promise<void> {
  await context.editor.close();
  await assertClean(context);
}

async function close({ editor, model, home }: StoryContext): Promise<void> {
  await editor.close();
  await model.close();
  await home.remove();
}

/** Checks the wire and that no process is left except a reusable agent. */
async function assertClean({ editor, model, home }: StoryContext, agent?: number): Promise<void> {
  const leftovers = await findLeftoversWith("HOME", home.path, { but: agent });
  editor.assertClean();
  model.assertClean();
  if (leftovers.length === 0) return;
  for (const { pid } of leftovers) process.kill(pid, "SIGKILL");
  throw new Error(`Processes outlived their story: ${leftovers.map(({ command }) => command).join("; ")}`);
}

function report({ editor, model }: StoryContext): void {
  const problems = [...editor.problems(), ...model.violations].map((text) => `- ${text}\n`).join("");
  const requested = model.requests
    .map(({ number, userText }) => `- ${number}: ${userText.slice(0, 200)}\n`)
    .join("");
  console.error(
    `The wire, its last lines:\n${editor.wire.excerpt()}\nstderr:\n${editor.stderr.slice(-4000)}\n` +
      `Problems found:\n${problems}Requests to the model:\n${requested}`,
  );
}
