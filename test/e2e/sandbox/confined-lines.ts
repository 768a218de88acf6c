import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { shellAnalysis } from "../../../src/tool/command-analysis.ts";
import { defaultRules } from "../../../src/permission/default-rules.ts";
import type { PermissionRequest } from "../../../src/permission/rule.ts";
import { ProjectSandbox } from "../../../src/sandbox/project-sandbox.ts";
import type { SandboxProfile } from "../../../src/sandbox/profile.ts";
import { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { type Files, gitRepository } from "../../support/temp.ts";

/** Time for one command; compilers are slow on a busy machine. */
const limitMs = 60_000;

/** A repository in which command lines run as at the level Sandboxed, without starting the program. */
export async function openConfinedLines(files: Files) {
  const repository = await gitRepository(files);
  const root = realpathSync(repository.path);
  const rules = defaultRules({ outputFolder: "/nowhere", skillFolders: [] });
  const env = { ...process.env, GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@example.org" };
  const environment = { ...env, GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@example.org" };
  const home = homedir();
  const profiles: SandboxProfile[] = [];
  const system = new (class extends Sandbox {
    override confine(...given: Parameters<Sandbox["confine"]>) {
      profiles.push(given[1]);
      return super.confine(...given);
    }
  })({ env: () => environment });
  const own = { config: join(home, ".config/fairlead"), data: join(home, ".local/share/fairlead") };
  const sandbox = new ProjectSandbox({
    // The setting that the documentation recommends.
    settings: { writable: ["~/.npm"] },
    folders: {
      cwd: root,
      roots: [root],
      worktree: root,
      home,
      outputFolder: join(own.data, "tool-output"),
      skills: [],
      own: { ...own, runtime: join(own.data, "runtime") },
    },
    env: () => environment,
    system: () => Promise.resolve(system),
    rules: () => [rules],
    warn: () => {},
  });
  return {
    root,
    rules,
    repository,
    analyze: (command: string): Promise<PermissionRequest[]> =>
      shellAnalysis.analyze(command, { cwd: root, start: root, home, roots: [root], shell: "bash" }),
    /** Runs a line with its own profile. `before` precedes the sandbox's command line. */
    async run(command: string, requests: readonly PermissionRequest[], before: readonly string[] = []) {
      const confinement = await sandbox.open({
        command,
        requests,
        start: root,
        isSandboxed: true,
        rules: [rules],
        isAllowedOutside: false,
        hosts: [],
        judgeConnection: () => "ask",
      });
      if (confinement.kind !== "confined") throw new Error(JSON.stringify(confinement));
      const { argv, env: added } = await confinement.confine(["bash", "-c", command]);
      const [program = "", ...args] = [...before, ...argv];
      const options = { cwd: root, env: { ...environment, ...added }, all: true, reject: false } as const;
      const { all, exitCode } = await execa(program, args, { ...options, timeout: limitMs, stdin: "ignore" });
      const profile = profiles.at(-1);
      if (profile === undefined) throw new Error("no profile");
      const hosts = confinement.listBlockedHosts();
      return { exitCode, output: all, hosts, profile, added: await confinement.findAddedFiles(false) };
    },
    async [Symbol.asyncDispose]() {
      system.close();
      await repository.remove();
    },
  };
}
