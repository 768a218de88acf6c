import { Editor, type EditorOptions } from "./editor.ts";
import { startModelServer, type ModelServer } from "./model-server.ts";
import { leftoversWith } from "./processes.ts";
import {
  gitRepository,
  temporaryFolder,
  writeConfig,
  type Files,
  type GitRepository,
  type TemporaryFolder,
} from "./temp.ts";

export interface StoryOptions extends Omit<EditorOptions, "home" | "cwd"> {
  /** The repository's first commit. */
  files?: Files;
  /** Further files of the home folder. */
  homeFiles?: Files;
  /** Added to the global configuration. */
  config?: Record<string, unknown>;
  /** False leaves `initialize` to the story. */
  initialize?: boolean;
}

export interface Stage {
  editor: Editor;
  model: ModelServer;
  repository: GitRepository;
  home: TemporaryFolder;
}

/**
 * Plays a story with a real agent, a scripted model and a real repository. At its end the model's requests, the
 * whole wire and the processes left behind are checked; a failure prints what passed on the wire.
 */
export async function story(options: StoryOptions, play: (stage: Stage) => Promise<void>): Promise<void> {
  await using home = await temporaryFolder(options.homeFiles, "fairlead-home-");
  await using repository = await gitRepository(options.files);
  const model = await startModelServer();
  await writeConfig(home.path, model.url, options.config);
  const editor = new Editor({ ...options, home: home.path, cwd: repository.path });
  try {
    if (options.initialize !== false) await editor.initialize();
    await play({ editor, model, repository, home });
    await editor.close();
    await assertClean(editor, model, home.path);
  } catch (error) {
    report(editor, model);
    throw error;
  } finally {
    await editor.close();
    await model.close();
  }
}

async function assertClean(editor: Editor, model: ModelServer, home: string): Promise<void> {
  const leftovers = await leftoversWith("HOME", home);
  editor.assertClean();
  model.assertClean();
  if (leftovers.length === 0) return;
  for (const { pid } of leftovers) process.kill(pid, "SIGKILL");
  throw new Error(`Processes outlived the agent: ${leftovers.map(({ command }) => command).join("; ")}`);
}

function report(editor: Editor, model: ModelServer): void {
  const problems = [...editor.problems(), ...model.violations].map((text) => `- ${text}\n`).join("");
  const asked = model.requests
    .map(({ number, userText }) => `- ${number}: ${userText.slice(0, 200)}\n`)
    .join("");
  console.error(
    `The wire, its last lines:\n${editor.wire.excerpt()}\nstderr:\n${editor.stderr.slice(-4000)}\n` +
      `Problems found:\n${problems}Requests to the model:\n${asked}`,
  );
}
