/** A common language server and how to start it. Nothing is downloaded: its program must be on the PATH. */
export interface KnownServer {
  /** File extensions that it serves. */
  readonly extensions: readonly string[];
  /** Command lines, the preferred one first. */
  readonly commands: readonly (readonly string[])[];
  /** Used only in projects with one of these files in the root folder. */
  readonly markers?: readonly string[];
  /** Used only where the configuration names it. */
  readonly isOptIn?: boolean;
}

const scripts = [".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"];
const python = [".py", ".pyi"];
const ruby = [".rb", ".rake", ".gemspec", ".ru"];

/** The known servers by name. If there are several for one language, the first installed one is used. */
export const knownServers: ReadonlyMap<string, KnownServer> = new Map<string, KnownServer>(
  Object.entries({
    deno: {
      extensions: [".ts", ".tsx", ".js", ".jsx", ".mjs"],
      commands: [["deno", "lsp"]],
      markers: ["deno.json", "deno.jsonc"],
    },
    typescript: { extensions: scripts, commands: [["typescript-language-server", "--stdio"]] },
    vtsls: { extensions: scripts, commands: [["vtsls", "--stdio"]] },
    basedpyright: { extensions: python, commands: [["basedpyright-langserver", "--stdio"]] },
    pyright: { extensions: python, commands: [["pyright-langserver", "--stdio"]] },
    pylsp: { extensions: python, commands: [["pylsp"]] },
    ruff: { extensions: python, commands: [["ruff", "server"]] },
    gopls: { extensions: [".go"], commands: [["gopls"]] },
    rust: { extensions: [".rs"], commands: [["rust-analyzer"]] },
    clangd: {
      extensions: [".c", ".cpp", ".cc", ".cxx", ".c++", ".h", ".hpp", ".hh", ".hxx", ".h++"],
      commands: [["clangd"]],
    },
    jdtls: { extensions: [".java"], commands: [["jdtls"]] },
    "kotlin-ls": {
      extensions: [".kt", ".kts"],
      commands: [["kotlin-lsp", "--stdio"], ["kotlin-language-server"]],
    },
    metals: { extensions: [".scala", ".sbt"], commands: [["metals"]] },
    csharp: { extensions: [".cs"], commands: [["csharp-ls"]] },
    fsharp: { extensions: [".fs", ".fsi", ".fsx", ".fsscript"], commands: [["fsautocomplete"]] },
    "lua-ls": { extensions: [".lua"], commands: [["lua-language-server"]] },
    bash: {
      extensions: [".sh", ".bash", ".zsh", ".ksh"],
      commands: [["bash-language-server", "start"]],
    },
    "ruby-lsp": { extensions: ruby, commands: [["ruby-lsp"]] },
    solargraph: { extensions: ruby, commands: [["solargraph", "stdio"]] },
    "php intelephense": { extensions: [".php"], commands: [["intelephense", "--stdio"]] },
    phpactor: { extensions: [".php"], commands: [["phpactor", "language-server"]] },
    zls: { extensions: [".zig", ".zon"], commands: [["zls"]] },
    "elixir-ls": { extensions: [".ex", ".exs"], commands: [["elixir-ls"]] },
    gleam: { extensions: [".gleam"], commands: [["gleam", "lsp"]] },
    dart: { extensions: [".dart"], commands: [["dart", "language-server"]] },
    "ocaml-lsp": { extensions: [".ml", ".mli"], commands: [["ocamllsp"]] },
    haskell: {
      extensions: [".hs", ".lhs"],
      commands: [["haskell-language-server-wrapper", "--lsp"]],
    },
    "clojure-lsp": { extensions: [".clj", ".cljs", ".cljc"], commands: [["clojure-lsp"]] },
    "sourcekit-lsp": { extensions: [".swift", ".m", ".mm"], commands: [["sourcekit-lsp"]] },
    svelte: { extensions: [".svelte"], commands: [["svelteserver", "--stdio"]] },
    vue: { extensions: [".vue"], commands: [["vue-language-server", "--stdio"]] },
    astro: { extensions: [".astro"], commands: [["astro-ls", "--stdio"]] },
    terraform: { extensions: [".tf", ".tfvars"], commands: [["terraform-ls", "serve"]] },
    "yaml-ls": {
      extensions: [".yaml", ".yml"],
      commands: [["yaml-language-server", "--stdio"]],
      isOptIn: true,
    },
    eslint: {
      extensions: [...scripts, ".vue"],
      commands: [["vscode-eslint-language-server", "--stdio"]],
      isOptIn: true,
    },
  }),
);
