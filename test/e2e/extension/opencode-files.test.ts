import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { gitRepository, temporaryFolder } from "../../support/temp.ts";

// Typical homes and repositories of OpenCode users, each with another part of its format.

interface Example {
  readonly home?: Record<string, string>;
  readonly project?: Record<string, string>;
  readonly env?: Record<string, string>;
  /** Settings without effect here, in the order of the notes. */
  readonly notes: readonly string[];
  /** Some of the effective values, as `config show` prints them. */
  readonly counts: Readonly<Record<string, unknown>>;
  readonly agents?: readonly string[];
}

const examples: Readonly<Record<string, Example>> = {
  "a first file, written by the first start and completed by a user": {
    home: {
      ".config/opencode/opencode.json": `{
        "$schema": "https://opencode.ai/config.json",
        "theme": "tokyonight",
        "model": "anthropic/claude-sonnet-4-5",
        "small_model": "anthropic/claude-haiku-4-5",
        "autoupdate": "notify",
        "share": "manual",
        "username": "me",
        "keybinds": { "leader": "ctrl+x", "app_exit": "<leader>q" },
        "tui": { "scroll_speed": 3, "scroll_acceleration": { "enabled": true } },
        "provider": { "anthropic": { "options": { "timeout": 600000, "setCacheKey": true, "chunkTimeout": 30000 } } },
        "disabled_providers": ["gemini"],
        "mcp": {},
        "plugin": []
      }`,
      ".config/opencode/AGENTS.md": "Answer in one sentence.\n",
    },
    notes: ["username", "theme", "keybinds", "tui", "share", "autoupdate"],
    counts: { model: "anthropic/claude-sonnet-4-5", "provider.anthropic.options.timeout": 600_000 },
  },
  "servers on one's own network, keys in files and variables, a JSON with comments": {
    home: {
      ".config/opencode/config.json": '{ "share": "disabled" }',
      ".config/opencode/opencode.jsonc": `// mine
      {
        "model": "llama/coder", // the large one
        /* reached by VPN only */
        "provider": {
          "llama": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "llama-server (local)",
            "options": { "baseURL": "http://{env:LLAMA_HOST}:8081/v1", "apiKey": "{file:{env:HOME}/.keys/llama}",
                         "headers": { "X-Team": "{env:TEAM}" }, "timeout": false },
            "models": {
              "coder": {
                "id": "qwen3-coder:30b", "name": "Qwen3 Coder", "toolsEnabled": true, "reasoning": true,
                "tool_call": true, "attachment": false, "temperature": true, "release_date": "2025-08-01",
                "interleaved": { "field": "reasoning_content" }, "status": "beta", "experimental": true,
                "modalities": { "input": ["text", "image"], "output": ["text"] },
                "limit": { "context": 131072, "output": 16384 },
                "cost": { "input": 0, "output": 0, "cache_read": 0, "context_over_200k": { "input": 1, "output": 2 } },
                "options": { "top_k": 20 },
                "variants": { "quick": { "reasoningEffort": "low" }, "high": { "disabled": true } },
              },
            },
          },
        },
      }`,
      ".keys/llama": "sk-from-a-file\n",
    },
    env: { LLAMA_HOST: "10.0.0.7", TEAM: "blue" },
    notes: ["share"],
    counts: {
      model: "llama/coder",
      "provider.llama.options.baseURL": "http://10.0.0.7:8081/v1",
      "provider.llama.models.coder.limit.context": 131_072,
    },
  },
  "agents, modes, commands and skills, written in JSON and in folders": {
    home: {
      ".config/opencode/opencode.json": JSON.stringify({
        default_agent: "plan",
        agent: {
          build: {
            mode: "primary",
            model: "openai/gpt-5",
            prompt: "{file:./prompts/build.txt}",
            tools: { write: true },
          },
          plan: {
            temperature: 0.1,
            top_p: 0.9,
            permission: { edit: "deny", bash: { "*": "deny", "git log*": "allow" } },
          },
          reviewer: {
            description: "Reviews code",
            mode: "subagent",
            color: "#ff6b6b",
            steps: 12,
            reasoningEffort: "high",
            tools: { write: false, edit: false, "mymcp_*": false },
          },
          old: { disable: true },
        },
        mode: { ask: { prompt: "Only answer.", tools: { edit: false, bash: false } } },
        command: {
          test: {
            template: "Run the tests.\nFocus on $ARGUMENTS",
            description: "Tests",
            agent: "build",
            model: "openai/gpt-5",
            subtask: true,
          },
        },
        skills: { paths: ["~/skills"], urls: ["https://example.com/skills/"] },
      }),
      ".config/opencode/prompts/build.txt": "You build.",
      ".config/opencode/agents/docs/writer.md":
        '---\ndescription: Writes documents\nmode: subagent\nmodel: openai/gpt-5-mini\ntemperature: 0.3\npermission:\n  bash: deny\n  skill:\n    "*": allow\n---\nYou write.\n',
      ".config/opencode/modes/pair.md": "---\ntemperature: 0.5\n---\nYou pair.\n",
      ".config/opencode/commands/changelog.md":
        "---\ndescription: Changelog\nagent: docs/writer\n---\n!`git log --oneline -5`\n@README.md $1\n",
      ".claude/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files\n---\nSteps.\n",
      "skills/sql/SKILL.md": "---\nname: sql\ndescription: Writes SQL\n---\nSteps.\n",
    },
    notes: [],
    counts: { default_agent: "plan", "agent.build.prompt": "You build.", "command.test.subtask": true },
    agents: ["ask", "build", "docs/writer", "explore", "general", "pair", "plan", "reviewer"],
  },
  "rules and servers: permissions in every form, MCP of both kinds, language servers": {
    home: {
      ".config/opencode/opencode.json": JSON.stringify({
        permission: {
          "*": "ask",
          read: { "*": "allow", "*.env": "deny" },
          edit: "ask",
          glob: "allow",
          grep: "allow",
          list: "allow",
          bash: { "*": "ask", "git status*": "allow", "rm *": "deny" },
          task: { "*": "deny", explore: "allow" },
          skill: { "internal-*": "deny" },
          webfetch: "allow",
          websearch: "deny",
          external_directory: { "~/work/**": "allow" },
          doom_loop: "ask",
          question: "allow",
          lsp: "allow",
          todowrite: "allow",
          "jira_*": "ask",
        },
        tools: { webfetch: true, "context7_*": false },
        mcp: {
          context7: {
            type: "remote",
            url: "https://mcp.context7.com/mcp",
            headers: { CONTEXT7_API_KEY: "{env:CONTEXT7_API_KEY}" },
            enabled: false,
          },
          jira: {
            type: "remote",
            url: "https://jira.example.com/mcp",
            oauth: { clientId: "{env:JIRA_CLIENT}", scope: "read" },
            timeout: 10_000,
            enabled: false,
          },
          plain: { type: "remote", url: "https://plain.example.com/mcp", oauth: false, enabled: false },
          files: {
            type: "local",
            command: ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."],
            environment: { LEVEL: "info" },
            enabled: false,
            timeout: 5_000,
          },
        },
        lsp: {
          typescript: { disabled: true },
          mine: {
            command: ["my-lsp", "--stdio"],
            extensions: [".my"],
            languageId: "my",
            env: { A: "b" },
            initialization: { x: 1 },
            disabled: true,
          },
        },
        formatter: {
          prettier: { disabled: true },
          own: { command: ["fmt", "$FILE"], environment: {}, extensions: [".my"] },
        },
      }),
    },
    env: { CONTEXT7_API_KEY: "ctx7sk-0123456789", JIRA_CLIENT: "client-1" },
    notes: [],
    counts: {
      "formatter.own.command": ["fmt", "$FILE"],
      "permission.bash.rm *": "deny",
      "mcp.files.command": ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."],
    },
  },
  "plugins with and without options, instructions, limits, everything for experts": {
    home: {
      ".config/opencode/opencode.json": JSON.stringify({
        plugin: [
          ["./plugin/guard.js", { level: "strict", apiKey: "{env:GUARD_KEY}" }],
          "file://{env:HOME}/.config/opencode/more.js",
        ],
        instructions: ["CONTRIBUTING.md", "docs/*.md", ".cursor/rules/*.md"],
        compaction: {
          auto: true,
          prune: false,
          reserved: 10_000,
          tail_turns: 2,
          preserve_recent_tokens: 8_000,
        },
        experimental: {
          batch_tool: true,
          openTelemetry: false,
          primary_tools: ["todowrite"],
          continue_loop_on_deny: true,
          mcp_timeout: 20_000,
          policies: [],
        },
        tool_output: { max_lines: 1_000, max_bytes: 40_000 },
        watcher: { ignore: ["dist/**"] },
        server: { port: 4_096, hostname: "0.0.0.0", mdns: true, cors: ["https://app.example.com"] },
        logLevel: "DEBUG",
        snapshot: true,
        layout: "stretch",
        attachment: { image: { auto_resize: true, max_width: 2_000 } },
        reference: {},
        references: {},
        enterprise: { url: "https://share.example.com" },
        subagent_depth: 2,
        shell: "/bin/bash",
        enabled_providers: ["anthropic", "openai"],
      }),
      ".config/opencode/plugin/guard.js":
        "export const Guard = async (input, options) => ({ event: () => options });\n",
      ".config/opencode/more.js": "export default async () => ({});\n",
    },
    env: { GUARD_KEY: "guard-0123456789" },
    notes: [
      "shell",
      "logLevel",
      "server",
      "layout",
      "watcher",
      "reference",
      "references",
      "attachment",
      "enterprise",
    ],
    counts: {
      "plugin.0": ["./plugin/guard.js", { level: "strict", apiKey: "(hidden)" }],
      "instructions.2": ".cursor/rules/*.md",
      "experimental.mcp_timeout": 20_000,
    },
  },
};

describe("OpenCode users' files work unchanged", () => {
  test.for(Object.entries(examples))("%s", async ([, example]) => {
    await using home = await temporaryFolder(example.home);
    await using repository = await gitRepository(example.project);
    const run = (...args: string[]) =>
      fairlead(home.path, [...args, "--json"], { cwd: repository.path, env: example.env ?? {} });
    const shown = await run("config", "show");
    expect(shown.stderr).toBe("");
    const { values, problems, notes, withheld } = JSON.parse(shown.stdout);
    expect({ problems, withheld }).toEqual({ problems: [], withheld: [] });
    expect(notes.map((note: string) => /"(\w+)" is not supported/.exec(note)?.[1]).toSorted()).toEqual(
      example.notes.toSorted(),
    );
    const all = new Map(
      values.map(({ setting, value }: { setting: string; value: unknown }) => [setting, value]),
    );
    const counted = Object.keys(example.counts).map((setting) => [setting, all.get(setting)]);
    expect(Object.fromEntries(counted)).toEqual(example.counts);
    if (example.agents === undefined) return;
    const listed = await run("agents", "list");
    expect(
      JSON.parse(listed.stdout)
        .map(({ name }: { name: string }) => name)
        .toSorted(),
    ).toEqual(example.agents);
  });
});

test("reads the user's instructions for OpenCode and passes options to a plugin", async () => {
  const model = await startModelServer();
  const provider = { local: { options: { baseURL: model.url }, models: { scripted: {} } } };
  const plugin = [["./name.js", { says: "from the options" }]];
  await using home = await temporaryFolder({
    ".config/opencode/opencode.json": JSON.stringify({ model: "local/scripted", provider, plugin }),
    ".config/opencode/name.js":
      'export const Name = async (_, { says }) => ({ "chat.message": (_, output) => { output.parts[0].text = says; } });\n',
    ".config/opencode/AGENTS.md": "Answer in one sentence.\n",
  });
  try {
    model.reply("Hello.");
    const { exitCode, stdout } = await fairlead(home.path, ["run", "Hi"]);
    expect([exitCode, stdout]).toEqual([0, "Hello."]);
    expect(model.requests[0]?.system).toContain("Answer in one sentence.");
    expect(model.requests[0]?.userText).toContain("from the options");
    model.assertClean();
  } finally {
    await model.close();
  }
});
