import { z } from "zod";
import { approvalModeSchema } from "../message/message.ts";
import { apis } from "./api.ts";
import { permissionSchema, toolsSchema } from "../permission/permission-config.ts";

/** Other keys are passed on if they are known provider parameters, else reported. */
export const agentConfigSchema = z
  .looseObject({
    name: z.string().trim().min(1).optional().describe("Display name (default: the key or the file's path)."),
    description: z.string().optional().describe("When to use it; shown to users and models."),
    mode: z.enum(["primary", "subagent", "all"]).optional(),
    hidden: z
      .boolean()
      .optional()
      .describe("Hidden from lists and pickers; tasks and @name can still call it."),
    disable: z.boolean().optional().describe("Removes the agent."),
    prompt: z.string().optional().describe("Replaces the system prompt of the model's family."),
    model: z.string().optional().describe("provider/model"),
    variant: z.string().optional().describe("Reasoning effort of the model."),
    temperature: z.number().optional(),
    top_p: z.number().optional(),
    topP: z.number().optional().describe("Other spelling of top_p."),
    steps: z.number().int().positive().optional().describe("Maximum number of model calls per turn."),
    maxSteps: z.number().int().positive().optional().describe("Old name of steps."),
    color: z
      .string()
      .regex(/^(#[0-9a-f]{3,8}|[a-z]+)$/i, "Must be #rrggbb or a name")
      .optional()
      .describe("#rrggbb or a name; passed to the editor."),
    options: z.record(z.string(), z.unknown()).optional().describe("Passed to the provider."),
    permission: permissionSchema.optional(),
    tools: toolsSchema.optional(),
  })
  .describe("An agent: a prompt, a model and rules under a name.");
export type AgentConfig = z.infer<typeof agentConfigSchema>;

const commandSettings = {
  description: z.string().optional().describe("What it does; shown in the editor's list."),
  agent: z.string().optional().describe("The agent that answers this one message."),
  model: z.string().optional().describe("The model that answers this one message: provider/model."),
  variant: z.string().optional().describe("Reasoning effort of the model."),
  subtask: z.boolean().optional().describe("Runs in a child session."),
};

const commandConfigSchema = z.strictObject({
  template: z.string().describe("The prompt; $ARGUMENTS, $1 …, @file and !`command` are filled in."),
  ...commandSettings,
});

/** Front matter of a command's file; the text after it is the template. Other keys are ignored. */
export const commandFrontMatterSchema = z
  .looseObject({
    ...commandSettings,
    "argument-hint": z.string().optional().describe("What may follow the name, shown by the editor."),
  })
  .describe(
    "A command: commands/<name>.md is called with /<name>. In the text $ARGUMENTS, $1 …, @file and !`command` are filled in.",
  );
export type CommandFrontMatter = z.infer<typeof commandFrontMatterSchema>;

const skillNameLimit = 64;
/** Characters; longer descriptions are truncated. */
export const skillDescriptionLimit = 1_024;

/** Front matter of a `SKILL.md`. Other keys are ignored. */
export const skillFrontMatterSchema = z
  .looseObject({
    name: z
      .string()
      .max(skillNameLimit)
      .regex(/^[\p{L}\p{N}][\p{L}\p{N}_.:-]*$/u, "must be letters, digits and - _ . : without spaces")
      .describe("Name of the skill (default: the folder's name)."),
    description: z
      .string()
      .trim()
      .min(1, "must say when to use the skill")
      .max(skillDescriptionLimit)
      .describe("What it does and when to use it; all that the model sees before it loads the skill."),
  })
  .describe("A skill: skills/<name>/SKILL.md, loaded by the model when its description fits.");

const modalitySchema = z.enum(["text", "image", "audio", "video", "pdf"]);

const toolCallsSchema = z
  .enum(["native", "text"])
  .optional()
  .describe(
    "How tool calls are exchanged: native over the API, or as text in the conversation, for servers that do not recognize them. Calls that the model writes as text are run only with text, under the same permissions.",
  );

const modelConfigSchema = z
  .looseObject({
    id: z.string().optional().describe("The provider's name for the model, if the key is a different one."),
    name: z.string().optional(),
    family: z
      .string()
      .optional()
      .describe(
        "Chooses the prompt: claude, gpt, codex, gemini, open, small, or the name of a model of one.",
      ),
    tool_set: z
      .enum(["all", "small"])
      .optional()
      .describe("The built-in tools it is offered: all, or only read, edit, write, bash, grep and glob."),
    tool_calls: toolCallsSchema,
    api: z.enum(apis).optional().describe("The API of this model, if it differs from the provider's."),
    limit: z
      .looseObject({
        context: z.number().nonnegative().optional(),
        input: z.number().nonnegative().optional(),
        output: z.number().nonnegative().optional(),
      })
      .optional()
      .describe("Tokens."),
    cost: z
      .looseObject({
        input: z.number().nonnegative().optional(),
        output: z.number().nonnegative().optional(),
        cache_read: z.number().nonnegative().optional(),
        cache_write: z.number().nonnegative().optional(),
      })
      .optional()
      .describe("US dollars per million tokens."),
    reasoning: z.boolean().optional(),
    attachment: z.boolean().optional().describe("Accepts files; modalities say which."),
    tool_call: z.boolean().optional(),
    temperature: z.boolean().optional().describe("Accepts a temperature."),
    modalities: z
      .strictObject({ input: z.array(modalitySchema).optional(), output: z.array(modalitySchema).optional() })
      .optional(),
    options: z.record(z.string(), z.unknown()).optional().describe("Added to each request."),
    headers: z.record(z.string(), z.string()).optional(),
    variants: z
      .record(z.string(), z.record(z.string(), z.unknown()))
      .optional()
      .describe("Options by the name of a variant; disabled: true removes a known one."),
  })
  .describe("Properties of a model.");
export type ModelConfig = z.infer<typeof modelConfigSchema>;

const providerConfigSchema = z
  .looseObject({
    name: z.string().optional(),
    npm: z
      .string()
      .optional()
      .describe("OpenCode's package for the provider; says which API it has if api does not."),
    api: z
      .union([z.enum(apis), z.string()])
      .optional()
      .describe(
        "The API of its models: chat, responses or messages. Or a URL: old place of options.baseURL.",
      ),
    env: z.array(z.string()).optional().describe("Environment variables that may hold the key."),
    options: z
      .looseObject({
        baseURL: z.string().optional().describe("Where the API is, without /chat/completions."),
        apiKey: z.string().optional().describe("Prefer {env:NAME} or {file:path} to the key itself."),
        apiKeyCommand: z
          .array(z.string())
          .min(1)
          .optional()
          .describe("A program and its arguments that print the key, such as a password manager's."),
        headers: z.record(z.string(), z.string()).optional(),
        timeout: z
          .union([z.number().int().positive(), z.literal(false)])
          .optional()
          .describe("Milliseconds without data after which a call counts as failed."),
        includeUsage: z
          .boolean()
          .optional()
          .describe("False for a server that refuses stream_options; tokens are estimated then."),
      })
      .optional(),
    models: z.record(z.string(), modelConfigSchema).optional(),
    tool_calls: toolCallsSchema,
    discover: z
      .boolean()
      .optional()
      .describe("Ask the provider once a day which models it has; the list is cached."),
    whitelist: z.array(z.string()).optional().describe("Only these models are listed."),
    blacklist: z.array(z.string()).optional().describe("These models are not listed."),
  })
  .describe("A provider of models, or changes to a known one.");
export type ProviderConfig = z.infer<typeof providerConfigSchema>;

const oauthSchema = z.union([
  z.literal(false),
  z.looseObject({
    clientId: z
      .string()
      .optional()
      .describe("ID of a client that you registered (default: registered automatically)."),
    clientSecret: z.string().optional().describe("Prefer {env:NAME} or {file:path} to the secret itself."),
    scope: z.string().optional().describe("Requested instead of the server's scopes; separated by spaces."),
    redirectUri: z
      .string()
      .optional()
      .describe("Registered address on this computer to which the browser returns."),
    callbackPort: z
      .number()
      .int()
      .min(1)
      .max(65_535)
      .optional()
      .describe("The port alone, instead of redirectUri (any free one)."),
    clientMetadataUrl: z
      .string()
      .optional()
      .describe("HTTPS address of a document that describes the client, where servers accept one."),
  }),
]);

const sandboxModeSchema = z
  .enum(["off", "auto", "required"])
  .describe(
    "off: never; auto: each command, if the system has a sandbox; required: each command, and none without a sandbox.",
  );

const hostSchema = z
  .string()
  .regex(/^[^\s/@]+$/, "a host without https:// and path, such as registry.npmjs.org")
  .describe(
    "registry.npmjs.org, *.github.com, or with a port other than those of the web: example.org:8080.",
  );

const sandboxNetworkSchema = z
  .union([z.boolean(), z.strictObject({ hosts: z.array(hostSchema) })])
  .optional();

export const programSandboxSchema = z
  .union([z.boolean(), z.strictObject({ network: sandboxNetworkSchema })])
  .optional()
  .describe(
    "Runs it in the sandbox of the system, without network unless given; it does not start without one.",
  );

const rootsSchema = z
  .boolean()
  .optional()
  .describe(
    "Whether the server may ask for the session's folders (true, unless its command line names folders).",
  );

export const mcpConfigSchema = z
  .union([
    z.strictObject({
      type: z.literal("local"),
      command: z.array(z.string()).min(1),
      cwd: z.string().optional(),
      environment: z.record(z.string(), z.string()).optional(),
      sandbox: programSandboxSchema,
      enabled: z.boolean().optional(),
      timeout: z.number().int().positive().optional().describe("Milliseconds."),
      roots: rootsSchema,
    }),
    z.strictObject({
      type: z.literal("remote"),
      url: z.string(),
      headers: z.record(z.string(), z.string()).optional(),
      oauth: oauthSchema.optional(),
      sandbox: programSandboxSchema.describe("For local servers only: a remote one with it is not used."),
      enabled: z.boolean().optional(),
      timeout: z.number().int().positive().optional().describe("Milliseconds."),
      roots: rootsSchema,
    }),
    z.strictObject({ enabled: z.boolean() }).describe("Switches a server of another file on or off."),
  ])
  .describe("An MCP server.");

const searchEndpointSchema = z
  .strictObject({
    url: z.string().describe("http(s) address; {query} in it is replaced by the query."),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .describe("Sent with each search; prefer {env:NAME} for keys."),
    body: z
      .unknown()
      .optional()
      .describe(
        "JSON body of a POST request, with {query} replaced in its strings; without it a GET request is sent.",
      ),
    results: z.string().optional().describe("Dotted path of the result list in the response."),
    fields: z
      .strictObject({ title: z.string().optional(), url: z.string().optional(), text: z.string().optional() })
      .optional()
      .describe("Where title, address and text are in a result."),
  })
  .describe("A search service that answers with JSON.");
export type SearchEndpointConfig = z.infer<typeof searchEndpointSchema>;

const languageServerSchema = z
  .strictObject({
    command: z
      .array(z.string())
      .min(1)
      .optional()
      .describe("The program and its arguments; it speaks over stdio. Optional for well-known servers."),
    extensions: z
      .array(z.string())
      .optional()
      .describe("File extensions with the dot; optional for well-known servers."),
    languageId: z.string().optional().describe("Accepted; the language follows from the file extension."),
    env: z.record(z.string(), z.string()).optional().describe("Added to its environment."),
    initialization: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Its own settings, as initializationOptions and workspace configuration."),
    sandbox: programSandboxSchema,
    disabled: z.boolean().optional(),
  })
  .describe("A language server, which answers the model's questions about code and checks its edits.");
export type LanguageServerConfig = z.infer<typeof languageServerSchema>;

const formatterSchema = z
  .strictObject({
    command: z
      .array(z.string())
      .min(1)
      .optional()
      .describe("The program and its arguments; $FILE is the file. Optional for well-known formatters."),
    extensions: z
      .array(z.string())
      .optional()
      .describe("File extensions with the dot; optional for well-known formatters."),
    environment: z.record(z.string(), z.string()).optional().describe("Added to its environment."),
    disabled: z.boolean().optional(),
  })
  .describe("A formatter, which runs on each file that a tool changed.");
export type FormatterConfig = z.infer<typeof formatterSchema>;

/** The events at which hooks run, as Claude Code names them. */
export const hookEvents = ["PreToolUse", "PostToolUse", "Stop", "Notification"] as const;
export type HookEvent = (typeof hookEvents)[number];

const hookGroupSchema = z.looseObject({
  matcher: z
    .string()
    .optional()
    .describe("A regular expression for names of tools, as in Claude Code; all when left out."),
  hooks: z.array(
    z.looseObject({
      type: z.string().describe("Only command is supported."),
      command: z.string().optional().describe("A shell command; its input is JSON."),
      timeout: z.number().positive().optional().describe("Seconds (60)."),
      async: z.boolean().optional().describe("Do not wait for it; its answer is ignored."),
      sandbox: programSandboxSchema,
    }),
  ),
});
export type HookGroup = z.infer<typeof hookGroupSchema>;

const notifyTerminalSchema = z
  .enum(["bell", "osc9"])
  .describe("bell: the terminal's bell; osc9: a notification with text, in terminals that show them.");

const ignored = () => z.unknown().optional().describe("Accepted from OpenCode's files; ignored.");

const ignoredKeys = {
  shell: ignored(),
  username: ignored(),
  theme: ignored(),
  keybinds: ignored(),
  tui: ignored(),
  logLevel: ignored(),
  server: ignored(),
  share: ignored(),
  autoshare: ignored(),
  autoupdate: ignored(),
  layout: ignored(),
  watcher: ignored(),
  reference: ignored(),
  references: ignored(),
  attachment: ignored(),
  enterprise: ignored(),
};

export const configSchema = z
  .strictObject({
    $schema: z.string().optional().describe("Address of this schema, for editors."),
    model: z.string().optional().describe("The model to start with: provider/model."),
    small_model: z.string().optional().describe("The model for titles and the like: provider/model."),
    approval: approvalModeSchema
      .optional()
      .describe(
        "The approval setting of new sessions (ask). Used in your own configuration only, not in a project's.",
      ),
    default_agent: z.string().optional().describe("The agent to start with."),
    subagent_depth: z.number().int().nonnegative().optional().describe("Maximum nesting depth of tasks."),
    subagent_idle_seconds: z
      .number()
      .positive()
      .optional()
      .describe("Seconds without activity after which a task is ended."),
    jobs: z
      .strictObject({
        commands: z.number().int().nonnegative().optional().describe("Commands at the same time: 8."),
        tasks: z.number().int().nonnegative().optional().describe("Background tasks at the same time: 4."),
        foreground_seconds: z
          .number()
          .positive()
          .optional()
          .describe("Seconds after which a command without a time limit continues in the background: 120."),
      })
      .optional()
      .describe("Limits of work in the background."),
    agent: z.record(z.string(), agentConfigSchema).optional(),
    mode: z.record(z.string(), agentConfigSchema).optional().describe("Old name of agent."),
    command: z.record(z.string(), commandConfigSchema).optional().describe("Commands by name."),
    provider: z.record(z.string(), providerConfigSchema).optional(),
    disabled_providers: z.array(z.string()).optional().describe("Providers not to use."),
    enabled_providers: z.array(z.string()).optional().describe("The only providers to use."),
    mcp: z.record(z.string(), mcpConfigSchema).optional(),
    mcp_tools: z
      .enum(["auto", "all", "search"])
      .optional()
      .describe(
        "Whether requests contain all tools of MCP servers (all), or a search for them (search). auto searches if they take more than a tenth of the context window.",
      ),
    permission: permissionSchema.optional(),
    tools: toolsSchema.optional(),
    instructions: z.array(z.string()).optional().describe("Further instructions: paths, globs or URLs."),
    lsp: z
      .union([z.boolean(), z.record(z.string(), languageServerSchema)])
      .optional()
      .describe(
        "Language servers by name. true uses those that are installed for the project's languages, false none; when left out you are asked once per project.",
      ),
    formatter: z
      .union([z.boolean(), z.record(z.string(), formatterSchema)])
      .optional()
      .describe(
        "Formatters by name, for files that edits changed. true uses those that the project configures and that are installed; entries add to them (false).",
      ),
    hooks: z
      .union([z.literal(false), z.record(z.string(), z.array(hookGroupSchema))])
      .optional()
      .describe(
        "Commands that run before and after calls of tools, at the end of turns and with questions, in the form of Claude Code's settings.json. false for none.",
      ),
    plugin: z
      .array(z.union([z.string(), z.array(z.unknown()).min(1)]))
      .optional()
      .describe(
        'Plugin modules: paths and names of packages, or ["name", {…}] with options for it. The option "sandbox" runs it in the sandbox of the system: true, or {"network": …}.',
      ),
    skills: z
      .strictObject({
        paths: z.array(z.string()).optional().describe("Further folders with skills."),
        urls: z.array(z.string()).optional().describe("Accepted; skills are not downloaded."),
      })
      .optional(),
    search: z
      .strictObject({ web: searchEndpointSchema.optional(), code: searchEndpointSchema.optional() })
      .optional()
      .describe("Services for websearch and codesearch; without them the tools are not offered."),
    snapshot: z
      .boolean()
      .optional()
      .describe("False keeps no copies of changed files; nothing can be undone."),
    compaction: z
      .looseObject({
        auto: z.boolean().optional().describe("Compact automatically when the context is full (true)."),
        prune: z.boolean().optional().describe("Omit old tool outputs from requests (true)."),
        reserved: z.number().int().nonnegative().optional().describe("Tokens to keep free."),
      })
      .optional(),
    evidence: z
      .strictObject({
        reminder: z
          .boolean()
          .optional()
          .describe(
            "Remind the model once before it ends a turn whose changes it did not check, or whose checks it only claims (true).",
          ),
      })
      .optional()
      .describe("What is shown and done at the end of a turn that changed files."),
    prompt_cache: z
      .strictObject({
        life_minutes: z
          .number()
          .positive()
          .optional()
          .describe(
            "Minutes without a request after which a provider drops a prompt (5 for Claude, else 10).",
          ),
        notice_above: z
          .union([z.number().nonnegative(), z.literal(false)])
          .optional()
          .describe(
            "Price in US dollars of reading the conversation again above which a notice appears (0.5).",
          ),
      })
      .optional()
      .describe("What is assumed of the prompt caches of providers."),
    tool_output: z
      .strictObject({
        max_lines: z.number().int().positive().optional(),
        max_bytes: z.number().int().positive().optional(),
      })
      .optional()
      .describe("Limits of a tool's output (2000 lines, 51200 bytes)."),
    sessions: z
      .strictObject({
        archive_after_days: z
          .number()
          .positive()
          .optional()
          .describe("Days without use after which a session leaves the list (never)."),
        remove_after_days: z
          .number()
          .positive()
          .optional()
          .describe("Days without use after which a session is deleted with all its data (never)."),
        keep_running_minutes: z
          .number()
          .min(0)
          .max(24 * 60)
          .optional()
          .describe("Minutes for which a running turn continues after its editor disconnected (0)."),
      })
      .optional()
      .describe(
        "Archiving and deletion of old sessions, and turns without an editor. Used in your own configuration only, not in a project's.",
      ),
    environment: z
      .strictObject({
        keep: z
          .array(z.string())
          .optional()
          .describe("Names of variables with credentials to pass on; * matches any characters."),
      })
      .optional()
      .describe(
        "Environment of commands and servers, without credentials unless named. Used in your own configuration only, not in a project's.",
      ),
    sandbox: z
      .union([
        sandboxModeSchema,
        z.strictObject({
          mode: sandboxModeSchema.optional(),
          network: sandboxNetworkSchema.describe(
            "Commands in the sandbox may use the network (false), or reach single hosts over HTTP and HTTPS.",
          ),
          writable: z
            .array(z.string())
            .optional()
            .describe(
              "Further files and folders that commands may write, such as caches of package managers.",
            ),
          hidden: z
            .array(z.string())
            .optional()
            .describe("Further files and folders that commands may not read."),
          command: z
            .array(z.string())
            .min(1)
            .optional()
            .describe(
              "Words that run a command in a container or on another machine, instead of the sandbox of the system; {cwd} is its folder, {command} the command as one word of a shell.",
            ),
        }),
      ])
      .optional()
      .describe("A sandbox for commands. Used in your own configuration only, not in a project's."),
    notify: z
      .union([
        z.array(z.string()).min(1),
        notifyTerminalSchema,
        z.strictObject({
          command: z.array(z.string()).min(1).optional(),
          terminal: notifyTerminalSchema.optional(),
          min_seconds: z
            .number()
            .nonnegative()
            .optional()
            .describe("Turns that took less time end without a notification (0)."),
        }),
      ])
      .optional()
      .describe(
        "What happens when a turn ends or a question waits: a program with its arguments, in which {title}, {message}, {event} and {session} are replaced, or a signal of the terminal in fairlead run. Used in your own configuration only, not in a project's.",
      ),
    worktree: z
      .boolean()
      .optional()
      .describe("New sessions work in a git worktree with a branch; /merge brings their changes back."),
    max_steps: z
      .number()
      .int()
      .positive()
      .optional()
      .describe("Maximum number of model calls per turn, for every agent."),
    max_cost: z
      .strictObject({
        turn: z.number().positive().optional(),
        session: z.number().positive().optional(),
      })
      .optional()
      .describe("US dollars after which the user is asked whether to continue."),
    retry: z
      .strictObject({
        attempts: z.number().int().positive().optional().describe("Attempts of one model call (5)."),
        delay_ms: z
          .number()
          .int()
          .positive()
          .optional()
          .describe("First wait; each later one is twice as long (2000)."),
        max_wait_ms: z
          .number()
          .int()
          .positive()
          .optional()
          .describe("The longest wait that a provider may ask for (60000)."),
        stall_ms: z
          .number()
          .int()
          .positive()
          .optional()
          .describe("Milliseconds without data after which a model call counts as failed (120000)."),
      })
      .optional(),
    experimental: z
      .looseObject({
        continue_loop_on_deny: z.boolean().optional().describe("Continue the turn after a rejected call."),
        mcp_timeout: z
          .number()
          .int()
          .positive()
          .optional()
          .describe("Milliseconds for a call of an MCP tool."),
        acp_v2: z
          .boolean()
          .optional()
          .describe("Speak the draft of ACP's version 2 with editors that ask for it (true)."),
        primary_tools: z.array(z.string()).optional().describe("Tools that child sessions do not get."),
      })
      .optional(),
    ...ignoredKeys,
  })
  .describe("Configuration of Fairlead.");
export type Config = z.infer<typeof configSchema>;

/** Keys of OpenCode's files that are accepted and ignored. Listed here because schemas are built lazily. */
export const keysWithoutMeaning: readonly string[] = Object.keys({
  shell: true,
  username: true,
  theme: true,
  keybinds: true,
  tui: true,
  logLevel: true,
  server: true,
  share: true,
  autoshare: true,
  autoupdate: true,
  layout: true,
  watcher: true,
  reference: true,
  references: true,
  attachment: true,
  enterprise: true,
} satisfies Record<keyof typeof ignoredKeys, true>);
