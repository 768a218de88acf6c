import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Loads prompt texts as strings, as the bundler does. */
const markdownAsText = {
  name: "markdown-as-text",
  enforce: "pre" as const,
  load(id: string) {
    if (!id.endsWith(".md")) return undefined;
    return `export default ${JSON.stringify(readFileSync(id, "utf8"))};`;
  },
};

/** Tests of parts that need no build. The others start the program. */
const unit = ["test/{unit,tool,session,property,streams}/**/*.test.ts"];
const unitThatStartsProgram = ["test/property/client-calls.test.ts", "test/session/housekeeping.test.ts"];
const program = ["test/{e2e,crash,eval}/**/*.test.ts", ...unitThatStartsProgram];

/** Tests that start many programs, kill them or wait for deadlines: `npm test` leaves them out. */
const slowUnit = [
  "test/unit/**/{image,language-servers,layers,local-server,mcp-oauth,process,search,session-store}.test.ts",
  "test/property/{drop,undo-commands}.test.ts",
  "test/tool/lsp/*.test.ts",
  "test/tool/command-changes.test.ts",
];
const slowProgram = [
  "test/e2e/sandbox/{everyday-commands,kernel-evidence}.test.ts",
  "test/crash/*.test.ts",
  "test/eval/{failures,replay,requests,small-window}.test.ts",
  "test/e2e/mcp/{many-tools,mcp-conformance,mcp-modern,mcp-remote}.test.ts",
  "test/e2e/*/{changes,evidence,jobs,jobs-restart,package,rewind,run-terminal,sandbox-settings}.test.ts",
  "test/e2e/*/{background-tasks,formatters,hooks,hostile-environment,mcp-sampling,mcp-tasks}.test.ts",
  "test/e2e/*/{joined-turns,network-hosts,others-changes,run-worktree,sandboxed-servers,task-worktrees,worktree}.test.ts",
  "test/e2e/*/{archive,attach,bad-input,client-quirks,clients,command-line,compaction,config-commands,context}.test.ts",
  "test/e2e/*/{crossing-wires,custom-tools,disk-faults,docs,doctor,editor-files,harness-editor,kit,kit-v2}.test.ts",
  "test/e2e/*/{instruction-urls,language-servers,launcher,lifecycle,lsp-tool,mcp-auth,mcp-authorization,mcp-faults,mcp-life}.test.ts",
  "test/e2e/*/{mcp-servers,models,near-right,outside-paths,permissions-check,permissions-plan,permissions-trust}.test.ts",
  "test/e2e/*/{plugins,prefix-sessions,prefix-trace,provider-faults,read-gate,run,run-choices,sessions-commands,sessions-view,setup,setup-answers}.test.ts",
  "test/e2e/*/{agents-commands,cards-and-refusals,command-processes,completion,empty-answers,file-commands}.test.ts",
  "test/e2e/*/{first-requests,frozen-prompt,mcp-commands,mcp-files,mentions,permissions-approvals,pickers,prefix}.test.ts",
  "test/e2e/*/{queue,refused-media,rejection-reasons,run-scripts,sandboxed-level,sandboxed-plugins,sessions-diff}.test.ts",
  "test/e2e/*/{setup-local,truncation}.test.ts",
  "test/property/client-calls.test.ts",
  "test/e2e/*/{shared-approvals,two-processes,undo,unstable,windows,wire-abuse,wire-prices,written-calls}.test.ts",
];

/**
 * Files that do not hold on Windows, with the reason for each. docs/installing.md says what differs there. Everything
 * else runs there too.
 */
export const notOnWindows: readonly { readonly reason: string; readonly files: readonly string[] }[] = [
  {
    reason: "only Linux and macOS have a sandbox",
    files: [
      "test/e2e/sandbox/{everyday-commands,kernel-evidence,network-hosts,sandbox-settings}.test.ts",
      "test/e2e/sandbox/{sandboxed-level,sandboxed-plugins,sandboxed-servers,system-sandbox}.test.ts",
      "test/unit/sandbox/{profile,working-hour}.test.ts",
    ],
  },
  {
    reason: "turns are joined through a Unix socket, which Windows cannot keep private",
    files: ["test/crash/joined-turns.test.ts", "test/e2e/{cli/attach,session/joined-turns}.test.ts"],
  },
  {
    reason: "makes pipes with mkfifo",
    files: ["test/crash/pipes.test.ts"],
  },
  {
    reason: "compares the modes of files, which Windows does not have",
    files: ["test/e2e/session/file-rights.test.ts"],
  },
];
const left = process.platform === "win32" ? notOnWindows.flatMap(({ files }) => files) : [];

/** Other unit tests that wait, write or compute for about a second: `npm run test:unit` leaves them out too. */
const unitOfSeconds = [
  "test/unit/**/{language-servers,layers,lock,model-stream}.test.ts",
  "test/tool/**/{bash,patch-forms,webfetch}.test.ts",
  "test/property/permission.test.ts",
  "test/unit/{permission/trust,tool/match-time,workspace/files}.test.ts",
  "test/streams/*.test.ts",
];

/** The files that take longest, longest first: begun last, they would run alone at the end. */
const longest = ["prefix-sessions", "mcp-conformance", "lifecycle", "plugins", "many-tools", "session-kill"];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.indexOf(basename(moduleId, ".test.ts"));
      return at === -1 ? longest.length : at;
    };
    return (await super.sort(files)).toSorted((left, right) => rank(left) - rank(right));
  }
}

/**
 * Modes: by default every test; `short`: those that are not slow; `quick`: the fast unit tests, with fewer generated
 * cases; `long`: every test, and kills, damaged files, generated cases and long sessions in their full number.
 */
export default defineConfig(({ mode }) => ({
  plugins: [markdownAsText],
  test: {
    setupFiles: ["test/support/seed.ts"],
    provide: { runLength: mode === "long" || mode === "quick" ? mode : "usual" },
    pool: "forks",
    isolate: false,
    // Stories wait for other processes most of their time.
    maxWorkers: 4,
    testTimeout: 30_000,
    // On a loaded machine the usual second is not enough for another process.
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 30_000,
    sequence: { sequencer: LongestFirst },
    allowOnly: false,
    passWithNoTests: false,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: unit,
          exclude: [
            ...left,
            ...unitThatStartsProgram,
            ...(mode === "short" || mode === "quick" ? slowUnit : []),
            ...(mode === "quick" ? unitOfSeconds : []),
          ],
        },
      },
      {
        extends: true,
        test: {
          name: "program",
          include: program,
          exclude: [...left, ...(mode === "short" ? slowProgram : [])],
          globalSetup: "scripts/build-if-stale.ts",
        },
      },
    ],
  },
}));
