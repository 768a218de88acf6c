import { existsSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { configHome, type Env, type Home } from "../../config/paths.ts";
import type { Setting } from "../../config/edit.ts";

/** How an editor starts the server. */
export interface StartCommand {
  readonly command: string;
  readonly args: readonly string[];
}

/** An ACP editor and its configuration. */
export interface EditorKind {
  readonly id: string;
  readonly name: string;
  /** Where to put the snippet, for the user. */
  readonly where: string;
  snippet(start: StartCommand): string;
  /** The settings file and its new values, for editors with JSON settings. */
  readonly settings?: {
    file(home: Home): string;
    of(start: StartCommand): readonly Setting[];
  };
}

export const editors: readonly EditorKind[] = [
  {
    id: "zed",
    name: "Zed",
    where: "settings.json (command palette: open settings file)",
    snippet: (start) => json({ agent_servers: { Fairlead: zedServer(start) } }),
    settings: {
      file: (home) =>
        home.platform === "win32"
          ? join(home.env["APPDATA"] || join(home.home, "AppData", "Roaming"), "Zed", "settings.json")
          : join(configHome(home), "zed", "settings.json"),
      of: (start) => [{ path: ["agent_servers", "Fairlead"], value: zedServer(start) }],
    },
  },
  {
    id: "jetbrains",
    name: "JetBrains IDEs",
    where: "~/.jetbrains/acp.json",
    snippet: (start) => json({ agent_servers: { Fairlead: start } }),
    settings: {
      file: ({ home }) => join(home, ".jetbrains", "acp.json"),
      of: (start) => [{ path: ["agent_servers", "Fairlead"], value: start }],
    },
  },
  {
    id: "codecompanion",
    name: "Neovim with CodeCompanion",
    where: "your Neovim configuration",
    snippet: codeCompanionSnippet,
  },
  {
    id: "avante",
    name: "Neovim with Avante",
    where: "the options of avante.nvim",
    snippet: ({ command, args }) =>
      [
        `provider = "fairlead",`,
        `acp_providers = {`,
        `  fairlead = {`,
        `    command = ${lua(command)},`,
        `    args = { ${args.map(lua).join(", ")} },`,
        `    env = { HOME = vim.env.HOME, PATH = vim.env.PATH },`,
        `  },`,
        `},`,
      ].join("\n"),
  },
  {
    id: "other",
    name: "another editor",
    where: "its settings for ACP agents",
    snippet: ({ command, args }) => [command, ...args].join(" "),
  },
];

/** Command for an editor that does not know the shell's setup: the name if it is on the PATH, else absolute paths. */
export function startCommand(env: Env): StartCommand {
  const program = fileURLToPath(new URL("../bin/fairlead.js", import.meta.url));
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const isOnPath = folders.some((folder) => isSameFile(join(folder, "fairlead"), program));
  if (isOnPath) return { command: "fairlead", args: ["acp"] };
  return { command: process.execPath, args: [program, "acp"] };
}

function isSameFile(one: string, other: string): boolean {
  return existsSync(one) && realpathSync.native(one) === realpathSync.native(other);
}

function zedServer(start: StartCommand) {
  return { type: "custom", ...start };
}

function codeCompanionSnippet({ command, args }: StartCommand): string {
  const words = [command, ...args].map(lua).join(", ");
  return `require("codecompanion").setup({
  adapters = {
    acp = {
      fairlead = function()
        local helpers = require("codecompanion.adapters.acp.helpers")
        return {
          name = "fairlead",
          formatted_name = "Fairlead",
          type = "acp",
          roles = { llm = "assistant", user = "user" },
          opts = { vision = true },
          commands = { default = { ${words} } },
          defaults = { mcpServers = {}, timeout = 20000 },
          parameters = {
            protocolVersion = 1,
            clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
            clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
          },
          handlers = {
            setup = function() return true end,
            form_messages = function(self, messages, capabilities)
              return helpers.form_messages(self, messages, capabilities)
            end,
            on_exit = function() end,
          },
        }
      end,
    },
  },
  interactions = { chat = { adapter = "fairlead" } },
})`;
}

const json = (value: unknown): string => JSON.stringify(value, undefined, 2);

const lua = (text: string): string => JSON.stringify(text);
