import { copyFile, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { KeyedSerial } from "../../base/async.ts";
import { isMissing, messageOf, UserError } from "../../base/errors.ts";
import { isFolder } from "../../base/files/file-stat.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import type { Worktree } from "../../message/message.ts";
import type { Environment } from "../process/find-program.ts";
import { findWorktree } from "../worktree.ts";
import { Git } from "./git.ts";
import { worktreeNameLength } from "./worktree-path.ts";

export interface WorktreesOptions {
  /** Contains the worktrees of all repositories. */
  readonly folder: string;
  /** Sessions are removed at the end, so that nobody could merge a worktree. */
  readonly isEphemeral?: boolean;
  /** The environment of commands. */
  readonly env: () => Environment;
}

/** The worktrees of sessions and tasks: folders of the program with a branch each, on which one of them works. */
export class Worktrees {
  readonly #options: WorktreesOptions;
  readonly #serial = new KeyedSerial();

  constructor(options: WorktreesOptions) {
    this.#options = options;
  }

  /**
   * Creates a worktree with a new branch from the state of the checkout that contains `cwd`: its commit, and the
   * uncommitted changes of tracked files. Throws {@link UserError}.
   */
  async create(cwd: string, sessionId: string): Promise<Worktree> {
    if (this.#options.isEphemeral)
      throw new UserError(
        "A worktree needs a session that is kept, and this run keeps none (--ephemeral). Start without worktree.",
      );
    const folder = await realpath(cwd);
    const main = await findWorktree(folder);
    if (main === undefined)
      throw new UserError(
        `A worktree needs a git repository, and ${folder} is not in one. Start without worktree.`,
      );
    const name = sessionId.slice(-worktreeNameLength);
    return this.#change(main, async () => {
      const git = await this.openGit(main);
      const head = await git.run(["rev-parse", "--verify", "--quiet", "HEAD"]);
      if (head.exitCode !== 0)
        throw new UserError(
          `A worktree needs a commit, and ${main} has none yet. Commit first, or start without worktree.`,
        );
      await makeFolder(this.#options.folder, 0o700);
      const parent = await realpath(this.#options.folder);
      const root = join(parent, `${basename(main)}-${name}`);
      const branch = `fairlead/${name}`;
      const base = await this.snapshot(main, { tracked: true });
      await git.text(["worktree", "add", "--quiet", "-b", branch, root, base]);
      const untracked = await git.bytes(["ls-files", "-z", "--others", "--exclude-standard", "--directory"]);
      const count = untracked.toString("utf8").split("\0").length - 1;
      return { root, branch, base, main, ...(count > 0 && { untracked: count }) };
    });
  }

  /** Returns the worktree with its folder, which is created again if it is gone. Throws {@link UserError}. */
  async reopen(worktree: Worktree, sessionId: string): Promise<Worktree> {
    const { root, branch, main } = worktree;
    if (this.exists(worktree)) return worktree;
    if (!isFolder(main))
      throw new UserError(`The folder ${main}, to which this session belongs, no longer exists.`);
    const hasFolder = await this.#change(main, async () => {
      const git = await this.openGit(main);
      await git.text(["worktree", "prune"]);
      if (!(await hasBranch(git, branch))) return false;
      await git.text(["worktree", "add", "--quiet", root, branch]);
      return true;
    });
    return hasFolder ? worktree : this.create(main, sessionId);
  }

  /** Returns a commit with the state of the worktree's files, except ignored ones. Changes no file and no branch. */
  async snapshot(root: string, { tracked }: { tracked: boolean }): Promise<string> {
    const git = await this.openGit(root);
    const folder = await mkdtemp(join(tmpdir(), "fairlead-index-"));
    try {
      const index = join(folder, "index");
      // The index has the state of the files, so that git need not read all of them.
      await copyFile(
        await git.text(["rev-parse", "--path-format=absolute", "--git-path", "index"]),
        index,
      ).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
      const env = { GIT_INDEX_FILE: index };
      await git.text(["add", tracked ? "--update" : "--all", "--", ":/"], { env });
      const tree = await git.text(["write-tree"], { env });
      if (tree === (await git.text(["rev-parse", "HEAD^{tree}"])))
        return await git.text(["rev-parse", "HEAD"]);
      return await git.text(["commit-tree", tree, "-p", "HEAD", "-m", "Uncommitted changes"]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Keeps a merged state from git's garbage collection. */
  async keep({ main, branch }: Worktree, commit: string): Promise<void> {
    await (await this.openGit(main)).text(["update-ref", toRef(branch), commit]);
  }

  /** Whether the program has any worktree. */
  hasAny(): boolean {
    return isFolder(this.#options.folder);
  }

  exists({ root }: Worktree): boolean {
    return isFolder(root);
  }

  /** Returns the files that differ from the state, relative to the worktree. */
  async listChanges({ root }: Worktree, base: string): Promise<string[]> {
    const now = await this.snapshot(root, { tracked: false });
    const git = await this.openGit(root);
    const names = await git.bytes(["diff-tree", "-r", "-z", "--name-only", "--no-renames", base, now]);
    return names.toString("utf8").split("\0").slice(0, -1);
  }

  /** Discards all changes since the state, except ignored files. */
  async reset({ root }: Worktree, base: string): Promise<void> {
    const git = await this.openGit(root);
    await git.text(["reset", "--quiet", "--hard", base]);
    await git.text(["clean", "--quiet", "-d", "--force", "--force"]);
  }

  /** Removes the worktree. The branch stays if it has commits that no other branch has. */
  remove(worktree: Worktree): Promise<void> {
    return this.#serial.run(worktree.main, () => this.#remove(worktree));
  }

  async #remove({ root, branch, main, base }: Worktree): Promise<void> {
    const git = await this.openGit(main);
    if (isFolder(root)) await git.text(["worktree", "remove", "--force", "--force", root]);
    else await git.text(["worktree", "prune"]);
    await git.run(["update-ref", "-d", toRef(branch)]);
    if (!(await hasBranch(git, branch))) return;
    const commits = await git.text([
      "rev-list",
      "--count",
      `refs/heads/${branch}`,
      "--not",
      base,
      "HEAD",
      `--exclude=${branch}`,
      "--branches",
    ]);
    if (commits === "0") await git.text(["branch", "--quiet", "--delete", "--force", branch]);
  }

  /** Returns git for a folder. Throws {@link GitError} if it is not installed. */
  openGit(folder: string): Promise<Git> {
    return Git.open(folder, this.#options.env);
  }

  /** Changes the worktrees of a checkout one after the other, because git locks its files without waiting. */
  async #change<T>(main: string, task: () => Promise<T>): Promise<T> {
    try {
      return await this.#serial.run(main, task);
    } catch (error) {
      if (error instanceof UserError) throw error;
      throw new UserError(`The worktree for ${main} could not be made: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }
}

const toRef = (branch: string): string => `refs/${branch}`;

async function hasBranch(git: Git, branch: string): Promise<boolean> {
  return (await git.run(["show-ref", "--verify", "--quiet", `refs/heads/${branch}`])).exitCode === 0;
}
