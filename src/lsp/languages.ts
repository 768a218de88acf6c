import { basename, extname } from "node:path";

/** File extensions by common language server names. */
const extensionsOfServers: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    astro: [".astro"],
    bash: [".sh", ".bash", ".zsh", ".ksh"],
    clangd: [".c", ".cpp", ".cc", ".cxx", ".c++", ".h", ".hpp", ".hh", ".hxx", ".h++"],
    csharp: [".cs"],
    dart: [".dart"],
    deno: [".ts", ".tsx", ".js", ".jsx", ".mjs"],
    "elixir-ls": [".ex", ".exs"],
    eslint: [".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue"],
    fsharp: [".fs", ".fsi", ".fsx", ".fsscript"],
    gopls: [".go"],
    jdtls: [".java"],
    "kotlin-ls": [".kt", ".kts"],
    "lua-ls": [".lua"],
    "ocaml-lsp": [".ml", ".mli"],
    "php intelephense": [".php"],
    pyright: [".py", ".pyi"],
    "ruby-lsp": [".rb", ".rake", ".gemspec", ".ru"],
    rust: [".rs"],
    "sourcekit-lsp": [".swift", ".m", ".mm"],
    svelte: [".svelte"],
    terraform: [".tf", ".tfvars"],
    typescript: [".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"],
    vue: [".vue"],
    "yaml-ls": [".yaml", ".yml"],
    zls: [".zig", ".zon"],
  }),
);

/** Language ids of the protocol, where they differ from the file extension. */
const languageIds: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ".bash": "shellscript",
    ".cc": "cpp",
    ".cjs": "javascript",
    ".cs": "csharp",
    ".cts": "typescript",
    ".cxx": "cpp",
    ".ex": "elixir",
    ".exs": "elixir",
    ".fs": "fsharp",
    ".h": "c",
    ".hpp": "cpp",
    ".hs": "haskell",
    ".js": "javascript",
    ".jsx": "javascriptreact",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".m": "objective-c",
    ".markdown": "markdown",
    ".md": "markdown",
    ".mjs": "javascript",
    ".ml": "ocaml",
    ".mm": "objective-cpp",
    ".mts": "typescript",
    ".pl": "perl",
    ".py": "python",
    ".pyi": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".sh": "shellscript",
    ".tf": "terraform",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".yml": "yaml",
    ".zsh": "shellscript",
  }),
);

/**
 * Whether the server handles a file. `extensions` are configured and may contain names like `.env` or
 * `Makefile`.
 */
export function servesFile(name: string, extensions: readonly string[] | undefined, path: string): boolean {
  const served = extensions ?? extensionsOfServers.get(name) ?? [];
  const file = basename(path);
  return served.some((extension) => file === extension || file.endsWith(withDot(extension)));
}

export function getLanguageId(path: string): string {
  const extension = extname(path).toLowerCase();
  return languageIds.get(extension) ?? (extension.slice(1) || "plaintext");
}

function withDot(extension: string): string {
  return extension.startsWith(".") ? extension : `.${extension}`;
}
