import { basename, extname } from "node:path";
import { knownServers } from "./known-servers.ts";

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
    ".clj": "clojure",
    ".cljc": "clojure",
    ".cljs": "clojure",
    ".hs": "haskell",
    ".lhs": "haskell",
    ".sbt": "scala",
    ".zon": "zig",
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

/** Extensions and file names that a server handles; `configured` may contain names like `.env` or `Makefile`. */
export function getServedFiles(name: string, configured: readonly string[] | undefined): readonly string[] {
  return configured ?? knownServers.get(name)?.extensions ?? [];
}

/** Whether the server handles a file. */
export function servesFile(name: string, configured: readonly string[] | undefined, path: string): boolean {
  const file = basename(path);
  return getServedFiles(name, configured).some((served) => file === served || file.endsWith(withDot(served)));
}

export function getLanguageId(path: string): string {
  const extension = extname(path).toLowerCase();
  return languageIds.get(extension) ?? (extension.slice(1) || "plaintext");
}

function withDot(extension: string): string {
  return extension.startsWith(".") ? extension : `.${extension}`;
}
