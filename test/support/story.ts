import { afterAll } from "vitest";
import { plain } from "./clients.ts";
import { Editor, type EditorOptions } from "./editor.ts";
import { startModelServer, type ModelServer } from "./model-server.ts";
import { leftoversWith } from "./processes.ts";
import {
  gitRepository,
  temporaryFolder,
  writeConfig,
  type Files,
  type GitRepository,
  type ModelLimit,
  type TemporaryFolder,
} from "./temp.ts";

export interface StoryOptions extends Omit<EditorOptions, "home" | "cwd"> {
  /** The repository's first commit. */
  files?: Files;
  /** Additional files in the home folder. */
  homeFiles?: Files;
  /** Added to the global configuration. */
  config?: Record<string, unknown>;
  /** The scripted model's context window, if not the default. */
  limit?: ModelLimit;
  /** False leaves `initialize` to the story. */
  initialize?: boolean;
}

export interface Stage {
  editor: Editor;
  model: ModelServer;
  repository: GitRepository;
  home: TemporaryFolder;
}

/** Idle agents of one test file. */
const idleLimit = 3;

type Play = (stage: Stage) => Promise<void>;

/**
 * Plays a story with a real agent, a scripted model and a real repository. At its end the model's requests, the
 * whole wire and the processes left behind are checked; a failure prints what passed on the wire.
 */
export async function story(options: StoryOptions, play: Play): Promise<void> {
  await using repository = await gitRepository(options.files);
  await playToEnd(await open(options, repository), play);
}

/**
 * Plays the stories of a test file as `story` does, except that those that start the agent with the same
 * configuration and the same client share one agent, one after the other. Each has a repository, a person, a model
 * and a record of its own, finds no sessions and leaves none, and all is checked at its end; how the agent ends,
 * after the last. A story that ends the agent or writes into its home is the last of that one.
 */
export function storiesOfOneAgent(): typeof story {
  const idle = new Map<string, Stage>();
  afterAll(async () => {
    for (const stage of idle.values()) await playToEnd(stage);
  });
  return async (options, play) => {
    if (options.initialize === false) {
      await story(options, play);
      return;
    }
    const key = startOf(options);
    await using repository = await gitRepository(options.files);
    const before = idle.get(key);
    idle.delete(key);
    const stage = before ? await follow(before, options, repository) : await open(options, repository);
    if (await playNext(stage, play)) idle.set(key, stage);
    const [oldest, ...rest] = idle;
    if (oldest === undefined || rest.length < idleLimit) return;
    idle.delete(oldest[0]);
    await playToEnd(oldest[1]);
  };
}

/** Options for starting the story's agent. */
const startOf = ({ client = plain(), homeFiles, env, program }: StoryOptions): string =>
  JSON.stringify([client.info, client.capabilities, homeFiles, env, program]);

async function open(options: StoryOptions, repository: GitRepository): Promise<Stage> {
  const home = await temporaryFolder(options.homeFiles, "fairlead-home-");
  const model = await startModelServer();
  await writeConfig(home.path, model.url, options.config, options.limit);
  const editor = new Editor({ ...options, home: home.path, cwd: repository.path });
  const stage = { editor, model, repository, home };
  if (options.initialize === false) return stage;
  try {
    await editor.initialize();
    return stage;
  } catch (error) {
    report(stage);
    await close(stage);
    throw error;
  }
}

/** The configuration applies from the next session on. */
async function follow(
  { editor, model, home }: Stage,
  options: StoryOptions,
  repository: GitRepository,
): Promise<Stage> {
  await writeConfig(home.path, model.url, options.config, options.limit);
  editor.renew({ ...options, cwd: repository.path });
  return { editor, model: model.successor(), repository, home };
}

/** Whether the agent is ready for another story: it runs, without sessions, in a home that is as it was. */
async function playNext(stage: Stage, play: Play): Promise<boolean> {
  const { editor, home } = stage;
  let isHomeChanged = false;
  const write = (files: Files) => {
    isHomeChanged = true;
    return home.write(files);
  };
  try {
    await play({ ...stage, home: { ...home, write } });
    if (editor.isOpen && !isHomeChanged) {
      await editor.deleteSessions();
      await assertClean(stage, editor.pid);
      return true;
    }
    await end(stage);
  } catch (error) {
    report(stage);
    await close(stage);
    throw error;
  }
  await close(stage);
  return false;
}

async function playToEnd(stage: Stage, play: Play = async () => {}): Promise<void> {
  try {
    await play(stage);
    await end(stage);
  } catch (error) {
    report(stage);
    throw error;
  } finally {
    await close(stage);
  }
}

async function end(stage: Stage): Promise<void> {
  await stage.editor.close();
  await assertClean(stage);
}

async function close({ editor, model, home }: Stage): Promise<void> {
  await editor.close();
  await model.close();
  await home.remove();
}

/** Checks the wire and that no process is left except a reusable agent. */
async function assertClean({ editor, model, home }: Stage, agent?: number): Promise<void> {
  const leftovers = await leftoversWith("HOME", home.path, { but: agent });
  editor.assertClean();
  model.assertClean();
  if (leftovers.length === 0) return;
  for (const { pid } of leftovers) process.kill(pid, "SIGKILL");
  throw new Error(`Processes outlived their story: ${leftovers.map(({ command }) => command).join("; ")}`);
}

function report({ editor, model }: Stage): void {
  const problems = [...editor.problems(), ...model.violations].map((text) => `- ${text}\n`).join("");
  const asked = model.requests
    .map(({ number, userText }) => `- ${number}: ${userText.slice(0, 200)}\n`)
    .join("");
  console.error(
    `The wire, its last lines:\n${editor.wire.excerpt()}\nstderr:\n${editor.stderr.slice(-4000)}\n` +
      `Problems found:\n${problems}Requests to the model:\n${asked}`,
  );
}
