import type { Command, Flag, Operands } from "./command-line/command.ts";

const json: Flag = { name: "json", about: "print JSON, for programs" };
const cwd: Flag = { name: "cwd", value: "DIR", about: "work there instead of here" };
const verbose: Flag = { name: "verbose", about: "log everything, on stderr too" };

const session: Operands = { text: "SESSION", least: 1, most: 1 };
const sessionNames = [
  "SESSION is an id, at least the last 6 letters of one, or last for the newest session of the folder.",
];
/** For commands that take a session. */
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
    about: "do one thing from the shell and print the answer",
    operands: { text: "[PROMPT]… [-]", least: 0, most: Number.POSITIVE_INFINITY },
    flags: [
      { name: "agent", value: "NAME", about: "who does it: build (default), plan, or an agent of yours" },
      { name: "mode", value: "NAME", about: "the same, by the editors' word" },
      { name: "model", short: "m", value: "PROVIDER/MODEL", about: "instead of the configured one" },
      { ...cwd },
      { name: "file", short: "f", value: "PATH", repeats: true, about: "attach a file or a folder" },
      { name: "session", short: "s", value: "ID", about: "go on in that session; last is --continue" },
      { name: "continue", short: "c", about: "go on in the newest session of the folder" },
      {
        name: "permission",
        value: "POLICY",
        choices: ["ask", "allow", "deny"],
        about:
          "what happens where a rule asks: ask, allow or deny (ask if stdin and stderr are terminals, else deny)",
      },
      { name: "trust", about: "trust the folder's own configuration as it is now" },
      {
        name: "max-steps",
        value: "N",
        number: "count",
        about: "model calls after which the turn stops (200 where nobody is asked)",
      },
      { name: "max-cost", value: "DOLLARS", number: "amount", about: "dollars after which the turn stops" },
      {
        name: "format",
        value: "FORMAT",
        choices: ["text", "json"],
        about: "text, or json: one ACP update a line",
      },
      { name: "json", about: "the same as --format json" },
      verbose,
    ],
    more: [
      "The answer goes to stdout, what happens to stderr. A pipe is more of the prompt; with - as a word it is waited for in any case. The first Ctrl-C cancels the turn, the second one ends the program.",
      'Example: fairlead run "explain this repository"',
      'Example: git diff | fairlead run --agent plan "review this"',
    ],
    load: async () => (await import("./run/run.ts")).run,
  },
  {
    names: ["demo"],
    about: "see a whole turn with a scripted model: no key, no network",
    flags: [],
    load: async () => (await import("./commands/demo.ts")).demo,
  },
  {
    names: ["setup"],
    about: "choose a provider, store its key, try it, and connect your editor",
    flags: [
      { name: "provider", value: "ID", about: "the provider, instead of asking" },
      { name: "base-url", value: "URL", about: "its address, for one that is not known" },
      {
        name: "key-from",
        value: "WAY",
        about: 'stdin, env:NAME, file:PATH, "command:WORDS" or none',
      },
      { name: "model", short: "m", value: "MODEL", about: "the model to start with" },
      { name: "editor", value: "NAME", about: "whose snippet is printed: zed, jetbrains, codecompanion, …" },
      { name: "no-test", about: "store without a trial request" },
      { name: "organization", value: "URL", about: "take over an organisation's configuration instead" },
    ],
    more: [
      "What no flag says is asked; where the terminal cannot draw, line by line.",
      "Example: pass show openai | fairlead setup --provider openai --key-from stdin --model gpt-5 --editor none",
    ],
    load: async () => (await import("./setup/setup.ts")).setup,
  },
  {
    names: ["logout"],
    about: "take stored keys away",
    operands: { text: "[PROVIDER]", least: 0, most: 1 },
    flags: [
      { name: "all", about: "of all providers" },
      { name: "organization", about: "the organisation's configuration instead" },
    ],
    load: async () => (await import("./commands/logout.ts")).logout,
  },
  {
    names: ["doctor"],
    about: "what is configured, what works, what to do",
    flags: [{ name: "offline", about: "ask no provider whether it works" }, cwd, json],
    more: ["Each provider is asked once for its models, for two seconds at most."],
    load: async () => (await import("./commands/doctor.ts")).doctor,
  },
  {
    names: ["models", "models list"],
    about: "the models that can be used now",
    operands: { text: "[PROVIDER]", least: 0, most: 1 },
    flags: [{ name: "discover", about: "ask the providers for theirs first" }, cwd, json],
    load: async () => (await import("./commands/models.ts")).models,
  },
  {
    names: ["agents list", "agents", "agent list", "agent"],
    about: "the agents of this folder",
    flags: [{ name: "all", about: "the hidden ones too" }, cwd, json],
    load: async () => (await import("./commands/agents.ts")).listAgents,
  },
  {
    names: ["agents show", "agent show"],
    about: "an agent's settings, rules and prompt",
    operands: { text: "NAME", least: 1, most: 1 },
    flags: [cwd, json],
    load: async () => (await import("./commands/agents.ts")).showAgent,
  },
  {
    names: ["agents create", "agent create"],
    about: "have a model write an agent from a description",
    operands: { text: "[DESCRIPTION]…", least: 0, most: Number.POSITIVE_INFINITY },
    flags: [
      { name: "name", value: "NAME", about: "its name, instead of one that the model finds" },
      {
        name: "mode",
        value: "MODE",
        choices: ["primary", "subagent", "all"],
        about: "for you, for other agents, or all (default)",
      },
      { name: "model", short: "m", value: "PROVIDER/MODEL", about: "writes it, and becomes its model" },
      { name: "deny", value: "PERMISSION", repeats: true, about: "what it may not do: edit, bash, …" },
      { name: "global", about: "for yourself in all projects, instead of in this one" },
      { name: "print", about: "print it instead of writing the file" },
      { name: "force", about: "replace the file where it is there" },
      cwd,
    ],
    more: ['Example: fairlead agents create --deny edit "finds slow SQL and says how to make it fast"'],
    load: async () => (await import("./commands/agents.ts")).createAgent,
  },
  {
    names: ["sessions list", "sessions"],
    about: "the sessions of this folder, newest first",
    flags: [
      { name: "all", about: "of all folders" },
      { name: "archived", about: "those too that were put away" },
      { name: "limit", value: "N", number: "count", about: "how many (50)" },
      cwd,
      json,
    ],
    load: async () => (await import("./sessions/sessions.ts")).listSessions,
  },
  {
    names: ["sessions show"],
    about: "what a session is, and its turns",
    operands: session,
    flags: [...lastFlags, json],
    more: sessionNames,
    load: async () => (await import("./sessions/sessions.ts")).showSession,
  },
  {
    names: ["sessions summary"],
    about: "what was done in a session, in two or three sentences that a model writes",
    operands: session,
    flags: [
      { name: "model", value: "MODEL", about: "which model writes it" },
      { name: "all", about: "last is the newest session of all folders" },
      cwd,
      json,
    ],
    more: sessionNames,
    load: async () => (await import("./sessions/session-summary.ts")).summariseSession,
  },
  {
    names: ["sessions export"],
    about: "a session as Markdown, or as JSON that can be imported",
    operands: session,
    flags: [
      { name: "format", value: "FORMAT", choices: ["md", "json"], about: "md (default) or json" },
      { name: "output", short: "o", value: "FILE", about: "into a file instead of stdout" },
      { name: "force", about: "replace the file where it is there" },
      ...lastFlags,
    ],
    more: sessionNames,
    load: async () => (await import("./sessions/sessions.ts")).exportSession,
  },
  {
    names: ["sessions import"],
    about: "store sessions that were exported as JSON; prints their ids",
    operands: { text: "FILE…", least: 1, most: Number.POSITIVE_INFINITY },
    flags: [{ ...cwd, about: "the folder that they belong to, instead of this one" }],
    load: async () => (await import("./sessions/sessions.ts")).importSessions,
  },
  {
    names: ["sessions delete"],
    about: "delete sessions with all that is stored of them",
    operands: { text: "SESSION…", least: 1, most: Number.POSITIVE_INFINITY },
    flags: [{ name: "yes", short: "y", about: "delete without a question" }, ...lastFlags],
    more: [
      ...sessionNames,
      "A terminal is asked first, unless ids are typed in full; without a terminal last needs --yes.",
    ],
    load: async () => (await import("./sessions/sessions.ts")).deleteSessions,
  },
  {
    names: ["sessions stats"],
    about: "what was used and spent",
    flags: [
      {
        name: "by",
        value: "WHAT",
        choices: ["model", "day", "folder", "session"],
        about: "model (default), day, folder or session",
      },
      { name: "days", value: "N", number: "amount", about: "in the last days only" },
      { ...cwd, about: "in one folder only" },
      json,
    ],
    load: async () => (await import("./sessions/sessions.ts")).sessionStats,
  },
  {
    names: ["trace"],
    about: "when each model call, tool and wait of a session's turns happened",
    operands: session,
    flags: [
      { name: "turn", value: "N", number: "count", about: "one turn only, counted from 1" },
      ...lastFlags,
      json,
    ],
    more: sessionNames,
    load: async () => (await import("./sessions/trace.ts")).trace,
  },
  {
    names: ["config show", "config"],
    about: "what is configured, each value with its file and line; keys are hidden",
    operands: { text: "[SETTING]", least: 0, most: 1 },
    flags: [cwd, json],
    more: ["Example: fairlead config show permission"],
    load: async () => (await import("./commands/config.ts")).showConfig,
  },
  {
    names: ["config path"],
    about: "the files that are read, the later beating the earlier, and where things are kept",
    flags: [cwd, json],
    load: async () => (await import("./commands/config.ts")).configPaths,
  },
  {
    names: ["config check"],
    about: "what is wrong in the configuration, or in files that you name",
    operands: { text: "[FILE]…", least: 0, most: Number.POSITIVE_INFINITY },
    flags: [cwd, json],
    load: async () => (await import("./commands/config.ts")).checkConfigFiles,
  },
  {
    names: ["config schema"],
    about: "the JSON schema of configuration files",
    flags: [],
    load: async () => (await import("./commands/config.ts")).configSchema,
  },
  {
    names: ["permissions check"],
    about: "what the rules say to command lines, one a line; runs nothing",
    operands: { text: "[COMMAND]…", least: 0, most: Number.POSITIVE_INFINITY },
    flags: [
      { name: "agent", value: "NAME", about: "under this agent's rules instead of the default one's" },
      { ...cwd, about: "as if run there instead of here" },
      { ...json, about: "one object a line: {command, action, parts}" },
    ],
    load: async () => (await import("./commands/permissions.ts")).checkCommands,
  },
  {
    names: ["permissions list", "permissions"],
    about: "what was approved for good in a project",
    flags: [cwd, json],
    load: async () => (await import("./commands/permissions.ts")).listApprovals,
  },
  {
    names: ["permissions revoke"],
    about: "take back approvals, by their numbers in the list",
    operands: { text: "N…", least: 1, most: Number.POSITIVE_INFINITY },
    flags: [cwd],
    load: async () => (await import("./commands/permissions.ts")).revokeApprovals,
  },
  {
    names: ["trust list", "trust"],
    about: "the folders whose own configuration you trust",
    flags: [json],
    load: async () => (await import("./commands/trust.ts")).listTrusted,
  },
  {
    names: ["trust add"],
    about: "trust what the configuration in a folder is now",
    operands: { text: "DIR", least: 1, most: 1 },
    flags: [],
    load: async () => (await import("./commands/trust.ts")).addTrust,
  },
  {
    names: ["trust revoke"],
    about: "trust it no more",
    operands: { text: "DIR", least: 1, most: 1 },
    flags: [],
    load: async () => (await import("./commands/trust.ts")).revokeTrust,
  },
  {
    names: ["mcp list", "mcp"],
    about: "connect to the MCP servers and say how they are",
    flags: [json],
    load: async () => (await import("./mcp/mcp.ts")).listMcp,
  },
  {
    names: ["mcp auth"],
    about: "let Fairlead use a remote MCP server, in your browser",
    operands: { text: "NAME", least: 1, most: 1 },
    flags: [json, { name: "no-browser", about: "print the address only" }],
    load: async () => (await import("./mcp/mcp.ts")).authorizeMcp,
  },
  {
    names: ["mcp logout"],
    about: "forget what a remote MCP server gave",
    operands: { text: "[NAME|URL]", least: 0, most: 1 },
    flags: [{ name: "all", about: "of every server" }],
    load: async () => (await import("./mcp/mcp.ts")).logoutMcp,
  },
  {
    names: ["completion"],
    about: "a script that completes commands in your shell",
    operands: { text: "bash|zsh|fish", least: 1, most: 1 },
    flags: [],
    more: [
      "bash: fairlead completion bash >> ~/.bashrc",
      "zsh:  fairlead completion zsh > ~/.zsh/_fairlead   (a folder of your fpath)",
      "fish: fairlead completion fish > ~/.config/fish/completions/fairlead.fish",
    ],
    load: async () => (await import("./commands/completion.ts")).completion,
  },
];
