import type { Command, Flag, Operands } from "./command-line/command.ts";

const json: Flag = { name: "json", about: "print JSON, for programs" };
const cwd: Flag = { name: "cwd", value: "DIR", about: "working directory, instead of the current one" };
const verbose: Flag = { name: "verbose", about: "log everything, also to stderr" };

const session: Operands = { text: "SESSION", least: 1, most: 1, values: "sessions" };
const sessionNames = [
  "SESSION is an id, its last 6 or more letters, or last for the newest session of the folder.",
];
/** Flags of commands that take a session. */
const lastFlags: readonly Flag[] = [
  { name: "all", about: "last is the newest session of all folders" },
  { ...cwd, about: "last is the newest session of that folder" },
];

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  {
    names: ["acp"],
    about: "serve an editor on stdin and stdout (editors start this)",
    flags: [verbose],
    load: async () => {
      const { serveEditor } = await import("./acp.ts");
      return async (call) => {
        await serveEditor(call.has("verbose") ? ["--verbose"] : []);
        return 0;
      };
    },
  },
  {
    names: ["run"],
    about: "run one prompt from the shell and print the answer",
    operands: { text: "[PROMPT]… [-]", least: 0, most: Number.POSITIVE_INFINITY },
    flags: [
      {
        name: "agent",
        value: "NAME",
        values: "choosable-agents",
        about: "the agent: build (default), plan, or one of yours",
      },
      {
        name: "mode",
        value: "NAME",
        values: "choosable-agents",
        about: "the same as --agent; ACP's name for it",
      },
      {
        name: "model",
        short: "m",
        value: "PROVIDER/MODEL",
        values: "models",
        about: "the model, instead of the configured one; MODEL:high also sets the effort",
      },
      { name: "effort", value: "EFFORT", about: "how much the model thinks: low, medium, high, …" },
      { ...cwd },
      { name: "add-dir", value: "DIR", repeats: true, about: "a further folder that the agent may use" },
      { name: "file", short: "f", value: "PATH", repeats: true, about: "attach a file or a folder" },
      {
        name: "session",
        short: "s",
        value: "ID",
        values: "sessions",
        about: "continue that session; last is the same as --continue",
      },
      { name: "continue", short: "c", about: "continue the newest session of the folder" },
      { name: "fork", about: "with --session or --continue: continue a copy of the session" },
      { name: "title", value: "TEXT", about: "the session's title, instead of one written by a model" },
      { name: "detach", about: "start the turn, print the session's id and leave; attach shows the turn" },
      {
        name: "minutes",
        value: "N",
        number: "amount",
        about: "with --detach: cancel the turn when nobody is attached for this long (60)",
      },
      { name: "worktree", about: "work in a new git worktree; /merge brings the changes back" },
      { name: "ephemeral", about: "keep nothing of the session on disk" },
      {
        name: "append-system",
        value: "TEXT|@FILE",
        about: "text for the end of the system prompt",
      },
      {
        name: "permission",
        value: "POLICY",
        choices: ["ask", "allow", "deny"],
        about:
          "answer when a rule asks: ask, allow or deny (ask if stdin and stderr are terminals, else deny)",
      },
      {
        name: "approval",
        value: "SETTING",
        choices: ["ask", "accept-edits", "sandboxed", "auto"],
        about: "the session's approval setting; sandboxed runs commands in a sandbox without asking",
      },
      {
        name: "allow",
        value: "RULE",
        repeats: true,
        about: 'allow calls that a rule asks about in this run: edit, "bash:npm test*"',
      },
      { name: "trust", about: "trust the folder's current configuration" },
      {
        name: "max-steps",
        value: "N",
        number: "count",
        about: "stop the turn after this many model calls (200 when no user is asked)",
      },
      {
        name: "max-cost",
        value: "DOLLARS",
        number: "amount",
        about: "stop the turn after this many dollars",
      },
      { name: "all", about: "print all of the model's text in a pipe, not the answer alone" },
      { name: "output", short: "o", value: "FILE", about: "also write the answer to a file" },
      {
        name: "schema",
        value: "FILE",
        about: "answer with JSON that matches this JSON Schema, and print only that",
      },
      {
        name: "format",
        value: "FORMAT",
        choices: ["text", "json"],
        about: "text, or json: one event per line; the last one is the result",
      },
      { name: "json", about: "the same as --format json" },
      verbose,
    ],
    more: [
      "The answer goes to stdout, everything else to stderr. Piped input is appended to the prompt; the word - always waits for it. The first Ctrl-C cancels the turn, the second one exits.",
      'Example: fairlead run "explain this repository"',
      'Example: git diff | fairlead run --agent plan "review this"',
    ],
    load: async () => async (call) =>
      call.has("detach")
        ? (await import("./attach/detach.ts")).runDetached(call)
        : (await import("./run/run.ts")).run(call),
  },
  {
    names: ["attach"],
    about: "show the turn of run --detach or of an editor that disconnected, running or ended",
    operands: session,
    flags: [{ name: "cancel", about: "cancel the turn" }, ...lastFlags],
    more: [
      ...sessionNames,
      "Questions are answered here if stdin and stderr are terminals, else they wait. Ctrl-C detaches, and the turn goes on.",
      "Example: fairlead attach last",
    ],
    load: async () => (await import("./attach/attach.ts")).attach,
  },
  {
    names: ["demo"],
    about: "show a whole turn with a scripted model: no key, no network",
    flags: [],
    load: async () => (await import("./commands/demo.ts")).demo,
  },
  {
    names: ["setup"],
    about: "choose a provider, store its key, test it, and connect your editor",
    operands: { text: "[PROVIDER]", least: 0, most: 1, values: "providers" },
    flags: [
      { name: "provider", value: "ID", values: "providers", about: "the provider, instead of asking" },
      { name: "base-url", value: "URL", about: "its address, for an unknown provider" },
      {
        name: "api",
        value: "API",
        choices: ["chat", "responses", "messages"],
        about: "its API (chat, or that of a known provider)",
      },
      {
        name: "key-from",
        value: "WAY",
        about: 'stdin, env:NAME, file:PATH, "command:WORDS" or none',
      },
      { name: "model", short: "m", value: "MODEL", about: "the model to start with" },
      {
        name: "editor",
        value: "NAME",
        values: "editors",
        about: "print the snippet for: zed, jetbrains, codecompanion, …",
      },
      {
        name: "ask-for",
        value: "WHAT",
        choices: ["all", "irreversible", "sandboxed", "nothing"],
        about:
          "what needs your consent: all edits and commands, what cannot be undone (default), that and what leaves a sandbox, or nothing",
      },
      { name: "no-test", about: "store without a test request" },
      { name: "organization", value: "URL", about: "use an organization's configuration instead" },
    ],
    more: [
      "Asks for everything that no flag gives; line by line if the terminal cannot draw.",
      "fairlead setup ollama (or lmstudio, llamacpp, vllm) finds the running server, picks one of its models, tries it and stores it; fairlead setup local finds out which of them runs.",
      "fairlead setup search chooses a web search: brave, tavily, exa, or your own searxng.",
      "Example: pass show openai | fairlead setup --provider openai --key-from stdin --model gpt-5 --editor none",
    ],
    load: async () => (await import("./setup/setup.ts")).setup,
  },
  {
    names: ["logout"],
    about: "remove stored credentials",
    operands: { text: "[PROVIDER]", least: 0, most: 1, values: "providers" },
    flags: [
      { name: "all", about: "remove the keys of all providers" },
      { name: "organization", about: "remove the organization's configuration instead" },
    ],
    load: async () => (await import("./commands/logout.ts")).logout,
  },
  {
    names: ["doctor"],
    about: "check the configuration, providers and storage",
    flags: [{ name: "offline", about: "send no requests to providers and start no MCP servers" }, cwd, json],
    more: ["Asks each provider once for its models, with a limit of two seconds."],
    load: async () => (await import("./doctor/doctor.ts")).doctor,
  },
  {
    names: ["models", "models list"],
    about: "list usable models",
    operands: { text: "[PROVIDER]", least: 0, most: 1, values: "providers" },
    flags: [{ name: "discover", about: "first ask the providers for their models" }, cwd, json],
    load: async () => (await import("./commands/models.ts")).models,
  },
  {
    names: ["agents list", "agents", "agent list", "agent"],
    about: "list the agents of this folder",
    flags: [{ name: "all", about: "include hidden agents" }, cwd, json],
    load: async () => (await import("./commands/agents.ts")).listAgents,
  },
  {
    names: ["agents show", "agent show"],
    about: "show an agent's settings, rules and prompt",
    operands: { text: "NAME", least: 1, most: 1, values: "agents" },
    flags: [cwd, json],
    load: async () => (await import("./commands/agents.ts")).showAgent,
  },
  {
    names: ["agents create", "agent create"],
    about: "let a model write an agent from a description",
    operands: { text: "[DESCRIPTION]…", least: 0, most: Number.POSITIVE_INFINITY },
    flags: [
      { name: "name", value: "NAME", about: "its name, instead of one chosen by the model" },
      {
        name: "mode",
        value: "MODE",
        choices: ["primary", "subagent", "all"],
        about: "primary (for you), subagent (for other agents) or all (default)",
      },
      {
        name: "model",
        short: "m",
        value: "PROVIDER/MODEL",
        values: "models",
        about: "the model that writes it and becomes its model",
      },
      { name: "deny", value: "PERMISSION", repeats: true, about: "deny a permission: edit, bash, …" },
      { name: "global", about: "create it for all your projects, not for this one" },
      { name: "print", about: "print it instead of writing a file" },
      { name: "force", about: "overwrite an existing file" },
      cwd,
    ],
    more: ['Example: fairlead agents create --deny edit "finds slow SQL and says how to make it fast"'],
    load: async () => (await import("./commands/agents.ts")).createAgent,
  },
  {
    names: ["sessions list", "sessions"],
    about: "list the sessions of this folder, newest first",
    flags: [
      { name: "all", about: "list the sessions of all folders" },
      { name: "archived", about: "show archived sessions too" },
      { name: "limit", value: "N", number: "count", about: "maximum number (50)" },
      cwd,
      json,
    ],
    load: async () => (await import("./sessions/sessions.ts")).listSessions,
  },
  {
    names: ["sessions show"],
    about: "show a session and its turns",
    operands: session,
    flags: [...lastFlags, json],
    more: sessionNames,
    load: async () => (await import("./sessions/sessions.ts")).showSession,
  },
  {
    names: ["sessions summary"],
    about: "let a model summarize a session in two or three sentences",
    operands: session,
    flags: [
      { name: "model", value: "MODEL", values: "models", about: "the model that writes it" },
      { name: "all", about: "last is the newest session of all folders" },
      cwd,
      json,
    ],
    more: sessionNames,
    load: async () => (await import("./sessions/session-summary.ts")).summarizeSession,
  },
  {
    names: ["sessions diff"],
    about: "print what a session changed, as a patch for git apply",
    operands: { ...session, text: "[SESSION]", least: 0 },
    flags: [
      { name: "stat", about: "print the changed files with their added and removed lines" },
      ...lastFlags,
      json,
    ],
    more: [
      ...sessionNames,
      "Without SESSION: last. Your own edits are not included. Exit code 1 if a file cannot be in the patch.",
      "Example: fairlead sessions diff last | git apply -R",
    ],
    load: async () => (await import("./sessions/session-diff.ts")).diffSession,
  },
  {
    names: ["sessions export"],
    about: "export a session as Markdown, or as JSON for import",
    operands: session,
    flags: [
      { name: "format", value: "FORMAT", choices: ["md", "json"], about: "md (default) or json" },
      { name: "output", short: "o", value: "FILE", about: "write to a file instead of stdout" },
      { name: "force", about: "overwrite an existing file" },
      ...lastFlags,
    ],
    more: sessionNames,
    load: async () => (await import("./sessions/sessions.ts")).exportSession,
  },
  {
    names: ["sessions view"],
    about: "show a session as a page in the browser",
    operands: session,
    flags: [
      { name: "output", short: "o", value: "FILE", about: "write the page to this file" },
      { name: "no-open", about: "only print the path of the page" },
      ...lastFlags,
    ],
    more: [...sessionNames, "The page is one file, which loads nothing: it can be sent to others."],
    load: async () => (await import("./sessions/view.ts")).viewSession,
  },
  {
    names: ["sessions import"],
    about: "import sessions exported as JSON, and print their ids",
    operands: { text: "FILE…", least: 1, most: Number.POSITIVE_INFINITY },
    flags: [{ ...cwd, about: "the folder of the imported sessions, instead of this one" }],
    load: async () => (await import("./sessions/sessions.ts")).importSessions,
  },
  {
    names: ["sessions delete"],
    about: "delete sessions and all their stored data",
    operands: { text: "SESSION…", least: 1, most: Number.POSITIVE_INFINITY, values: "sessions" },
    flags: [{ name: "yes", short: "y", about: "delete without asking" }, ...lastFlags],
    more: [
      ...sessionNames,
      "Asks first on a terminal, unless full ids are given; without a terminal last needs --yes.",
    ],
    load: async () => (await import("./sessions/sessions.ts")).deleteSessions,
  },
  {
    names: ["sessions stats"],
    about: "show token usage and cost",
    flags: [
      {
        name: "by",
        value: "WHAT",
        choices: ["model", "day", "folder", "session"],
        about: "model (default), day, folder or session",
      },
      { name: "days", value: "N", number: "amount", about: "only the last N days" },
      { ...cwd, about: "only this folder" },
      { name: "view", about: "show it as a page in the browser" },
      { name: "no-open", about: "with --view: only print the path of the page" },
      json,
    ],
    load: async () => (await import("./sessions/sessions.ts")).sessionStats,
  },
  {
    names: ["trace"],
    about: "show when each model call, tool and wait of a session happened",
    operands: session,
    flags: [
      { name: "turn", value: "N", number: "count", about: "only this turn, counted from 1" },
      ...lastFlags,
      json,
    ],
    more: sessionNames,
    load: async () => (await import("./sessions/trace.ts")).trace,
  },
  {
    names: ["config show", "config"],
    about: "show each configured value with its file and line; keys are hidden",
    operands: { text: "[SETTING]", least: 0, most: 1 },
    flags: [cwd, json],
    more: ["Example: fairlead config show permission"],
    load: async () => (await import("./commands/config.ts")).showConfig,
  },
  {
    names: ["config set"],
    about: "set a value in your configuration file",
    operands: { text: "SETTING VALUE", least: 2, most: 2 },
    flags: [],
    more: [
      "VALUE is JSON or text. Example: fairlead config set model openai/gpt-5",
      'Example: fairlead config set permission.bash \'{"*": "ask", "npm test": "allow"}\'',
    ],
    load: async () => (await import("./commands/config-set.ts")).setConfig,
  },
  {
    names: ["config unset"],
    about: "remove a value from your configuration file",
    operands: { text: "SETTING", least: 1, most: 1 },
    flags: [],
    load: async () => (await import("./commands/config-set.ts")).unsetConfig,
  },
  {
    names: ["config path"],
    about: "list the configuration files, lowest precedence first, and the storage paths",
    flags: [cwd, json],
    load: async () => (await import("./commands/config.ts")).configPaths,
  },
  {
    names: ["config check"],
    about: "list the errors in the configuration, or in the given files",
    operands: { text: "[FILE]…", least: 0, most: Number.POSITIVE_INFINITY },
    flags: [cwd, json],
    load: async () => (await import("./commands/config.ts")).checkConfigFiles,
  },
  {
    names: ["config schema"],
    about: "print the JSON schema of configuration files, or install it for your editor",
    flags: [
      {
        name: "install",
        about: "store it beside your configuration, and name it there",
      },
    ],
    load: async () => (await import("./commands/config.ts")).configSchema,
  },
  {
    names: ["permissions check"],
    about: "show what the rules decide for command lines, without running them",
    operands: { text: "[COMMAND]…", least: 0, most: Number.POSITIVE_INFINITY },
    flags: [
      {
        name: "agent",
        value: "NAME",
        values: "agents",
        about: "use this agent's rules instead of the default agent's",
      },
      { ...cwd, about: "as if run in that folder" },
      { ...json, about: "print one object per line: {command, action, parts}" },
    ],
    load: async () => (await import("./commands/permissions.ts")).checkCommands,
  },
  {
    names: ["permissions list", "permissions"],
    about: "list permanent approvals of a project",
    flags: [cwd, json],
    load: async () => (await import("./commands/permissions.ts")).listApprovals,
  },
  {
    names: ["permissions revoke"],
    about: "revoke approvals by their numbers in the list",
    operands: { text: "N…", least: 1, most: Number.POSITIVE_INFINITY },
    flags: [cwd],
    load: async () => (await import("./commands/permissions.ts")).revokeApprovals,
  },
  {
    names: ["trust list", "trust"],
    about: "list the folders whose configuration you trust",
    flags: [json],
    load: async () => (await import("./commands/trust.ts")).listTrusted,
  },
  {
    names: ["trust add"],
    about: "trust the current configuration of a folder",
    operands: { text: "DIR", least: 1, most: 1 },
    flags: [],
    load: async () => (await import("./commands/trust.ts")).addTrust,
  },
  {
    names: ["trust revoke"],
    about: "stop trusting a folder",
    operands: { text: "DIR", least: 1, most: 1 },
    flags: [],
    load: async () => (await import("./commands/trust.ts")).revokeTrust,
  },
  {
    names: ["mcp list", "mcp"],
    about: "list MCP servers and their status",
    flags: [json],
    load: async () => (await import("./mcp/mcp.ts")).listMcp,
  },
  {
    names: ["mcp add"],
    about: "add an MCP server: its address, or after -- its command",
    operands: { text: "NAME URL|-- COMMAND…", least: 0, most: 1_000 },
    flags: [
      {
        name: "from",
        value: "PROGRAM",
        choices: ["claude-code", "claude-desktop", "cursor", "vscode"],
        about: "add the servers of another program, or those named",
      },
      { name: "env", value: "NAME=VALUE", repeats: true, about: "a variable for the command" },
      { name: "header", value: "NAME=VALUE", repeats: true, about: "a header for the address" },
    ],
    more: [
      "fairlead mcp add notes https://notes.example/mcp",
      "fairlead mcp add files -- npx -y @modelcontextprotocol/server-filesystem /data",
      "fairlead mcp add --from cursor",
      "Keys belong in variables: --header 'authorization=Bearer {env:NOTES_TOKEN}'",
    ],
    load: async () => (await import("./mcp/mcp-edit.ts")).addMcp,
  },
  {
    names: ["mcp remove"],
    about: "remove an MCP server from your configuration file",
    operands: { text: "NAME", least: 1, most: 1, values: "servers" },
    flags: [],
    load: async () => (await import("./mcp/mcp-edit.ts")).removeMcp,
  },
  {
    names: ["mcp test"],
    about: "connect to one MCP server and list its tools",
    operands: { text: "NAME", least: 1, most: 1, values: "servers" },
    flags: [json],
    load: async () => (await import("./mcp/mcp.ts")).testMcp,
  },
  {
    names: ["mcp auth"],
    about: "authorize Fairlead for a remote MCP server in your browser",
    operands: { text: "NAME", least: 1, most: 1, values: "servers" },
    flags: [json, { name: "no-browser", about: "only print the address" }],
    load: async () => (await import("./mcp/mcp.ts")).authorizeMcp,
  },
  {
    names: ["mcp logout"],
    about: "remove the authorization of a remote MCP server",
    operands: { text: "[NAME|URL]", least: 0, most: 1, values: "servers" },
    flags: [{ name: "all", about: "remove the authorizations of all servers" }],
    load: async () => (await import("./mcp/mcp.ts")).logoutMcp,
  },
  {
    names: ["completion"],
    about: "print a shell completion script",
    // The scripts call it with "values" and a kind of values.
    operands: { text: "bash|zsh|fish", least: 1, most: 2 },
    flags: [],
    more: [
      "bash: fairlead completion bash >> ~/.bashrc",
      "zsh:  fairlead completion zsh > ~/.zsh/_fairlead   (a folder in your fpath)",
      "fish: fairlead completion fish > ~/.config/fish/completions/fairlead.fish",
    ],
    load: async () => (await import("./commands/completion.ts")).completion,
  },
];
