// The layers of src/, from the door down. A folder may import from the folders named here, never upward.
const layers = [
  ["cli"],
  ["app.ts"],
  ["acp", "project"],
  ["session"],
  ["turn", "slash-commands"],
  ["tasks", "user-input"],
  ["session-state"],
  ["tool-calls"],
  ["context", "undo", "reports"],
  ["conversation"],
  ["mcp", "plugin", "evidence", "formatter", "hook"],
  ["tool", "command", "lsp"],
  ["sandbox"],
  ["agent", "model", "skill", "workspace"],
  ["config", "instruction"],
  ["permission", "storage"],
  ["message"],
  ["shell"],
  ["base"],
];

const place = (names) => `^src/(${names.map((name) => name.replace(".", "\\.")).join("|")})(/|$)`;

const upward = layers.slice(1).map((names, index) => ({
  name: `no-import-upward-from-${names.join("-")}`,
  severity: "error",
  from: { path: place(names) },
  to: { path: place(layers.slice(0, index + 1).flat()) },
}));

const foreign = [
  { name: "@agentclientprotocol/sdk", homes: ["acp", "cli"] },
  { name: "ai", homes: ["model"] },
  { name: "@ai-sdk/openai-compatible", homes: ["model"] },
  { name: "@modelcontextprotocol/client", homes: ["mcp"] },
  { name: "lowdb", homes: ["storage"] },
  { name: "vscode-jsonrpc", homes: ["lsp"] },
  { name: "vscode-languageserver-protocol", homes: ["lsp"] },
].map(({ name, homes }) => ({
  name: `${name.replaceAll(/[^a-z]+/g, "-")}-stays-at-home`,
  severity: "error",
  from: { path: "^src/", pathNot: place(homes) },
  to: { path: `node_modules/${name}/` },
}));

module.exports = {
  forbidden: [
    { name: "no-cycle", severity: "error", from: {}, to: { circular: true } },
    { name: "no-folder-cycle", severity: "error", scope: "folder", from: {}, to: { circular: true } },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true, pathNot: "^node:" } },
    ...upward,
    ...foreign,
    {
      name: "acp-renders-facts-of-tools",
      severity: "error",
      from: { path: "^src/acp/" },
      to: { path: "^src/tool/", pathNot: "^src/tool/presentation\\.ts$" },
    },
  ],
  options: {
    // TypeScript 7 has no JavaScript API that this tool knows: swc reads the files, type-only imports included.
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      extensions: [".ts", ".js"],
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default"],
    },
  },
};
