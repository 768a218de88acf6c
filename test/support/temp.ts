import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, realpath, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { codeOf } from "../../src/base/errors.ts";
import { toObject } from "./json.ts";

/** Contents by path, relative to the folder. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** A folder that is removed when it goes out of scope (`await using`) or by `remove`. */
export interface TemporaryFolder extends AsyncDisposable {
  /** Absolute, without symbolic links. */
  readonly path: string;
  write(files: Files): Promise<void>;
  remove(): Promise<void>;
}

export interface GitRepository extends TemporaryFolder {
  /** Runs git in it and returns the output, without the last newline. */
  git(...args: string[]): Promise<string>;
}

export async function temporaryFolder(files: Files = {}, name = "fairlead-test-"): Promise<TemporaryFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), name)));
  const remove = () =>
    rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }).catch((error: unknown) => {
      if (!isFolderOfProgram(error)) throw error;
    });
  const folder = {
    path,
    write: (more: Files) => writeFiles(path, more),
    remove,
    [Symbol.asyncDispose]: remove,
  };
  await folder.write(files);
  return folder;
}

/** Windows removes no folder in which a program runs. Programs of Git's bash may outlive their command there. */
const isFolderOfProgram = (error: unknown): boolean =>
  process.platform === "win32" && codeOf(error) === "EBUSY" && toObject(error).syscall === "rmdir";

/** A repository with one commit that contains the files. The user's git configuration is not used. */
export async function gitRepository(files: Files = { "README.md": "# Sample\n" }): Promise<GitRepository> {
  const folder = await temporaryFolder(files, "fairlead-repository-");
  const git = (...args: string[]) => runGit(folder.path, args);
  const stored = join(firstCommits, createHash("sha256").update(JSON.stringify(files)).digest("hex"));
  const target = join(folder.path, ".git");
  if (existsSync(stored)) {
    await cp(stored, target, { recursive: true });
    return { ...folder, git };
  }
  await git("init", "--quiet", "--initial-branch=main", "--template=");
  await git("add", "--all");
  await git("commit", "--quiet", "--allow-empty", "--message=First");
  await keep(target, stored);
  return { ...folder, git };
}

/** Cached git folders by their files: most stories begin with the same, and copying is cheaper than git. */
const firstCommits = join(import.meta.dirname, "../../node_modules/.cache/fairlead-tests/commits");

/** A parallel test may add the same folder: then one of the two copies is used. */
async function keep(folder: string, place: string): Promise<void> {
  const fresh = `${place}-${randomUUID()}`;
  await cp(folder, fresh, { recursive: true });
  await rename(fresh, place).catch(() => rm(fresh, { recursive: true, force: true }));
}

async function runGit(cwd: string, args: string[]): Promise<string> {
  const { stdout } = await execa("git", [...settings, ...args], { cwd, env: gitEnv });
  return stdout;
}

/** Tokens of the scripted model; its output limit is unknown unless given. */
export interface ModelLimit {
  context: number;
  output?: number | undefined;
}

const usualLimit: ModelLimit = { context: 100_000, output: 8_000 };

/** Writes the global configuration that makes the scripted model the only one. */
export async function writeConfig(
  home: string,
  modelServerUrl: string,
  more: Record<string, unknown> = {},
  limit = usualLimit,
  otherModels: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const config = {
    model: "test/scripted",
    provider: {
      test: {
        options: { baseURL: modelServerUrl, apiKey: "test-key" },
        models: {
          scripted: { name: "Scripted", limit, tool_call: true },
          ...otherModels,
        },
      },
    },
    // Programs installed on this machine must not matter.
    lsp: false,
    // A reminder is one more request than most stories script.
    evidence: { reminder: false },
    ...more,
  };
  await writeFiles(home, { ".config/fairlead/fairlead.json": JSON.stringify(config, undefined, 2) });
}

const settings = [
  "user.name=Test",
  "user.email=test@example.com",
  "commit.gpgsign=false",
  "core.autocrlf=false",
].flatMap((setting) => ["-c", setting]);
const nowhere = process.platform === "win32" ? "NUL" : "/dev/null";
const gitEnv = { GIT_CONFIG_GLOBAL: nowhere, GIT_CONFIG_NOSYSTEM: "1" };

async function writeFiles(root: string, files: Files): Promise<void> {
  const contents = Object.entries(files).map(([name, content]) => [join(root, name), content] as const);
  const folders = new Set(contents.map(([path]) => dirname(path)));
  await Promise.all([...folders].map((folder) => mkdir(folder, { recursive: true })));
  await Promise.all(contents.map(([path, content]) => writeFile(path, content)));
}
