/** A common formatter. It is used in projects that configure it, if its program is installed. */
export interface KnownFormatter {
  /** File extensions with the dot. */
  readonly extensions: readonly string[];
  /** The program and its arguments; `$FILE` is the file. */
  readonly command: readonly string[];
  /** Files in the project's folder that configure it; with `text`, only if they contain it. */
  readonly markers: readonly { readonly file: string; readonly text?: RegExp }[];
  /** It may change other files than the given one. */
  readonly changesOthers?: boolean;
}

const scripts = [".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"];
const styles = [".css", ".scss", ".less"];
const python = [".py", ".pyi"];
const ruby = [".rb", ".rake", ".gemspec", ".ru"];

const files = (...names: string[]) => names.map((file) => ({ file }));
const prettierFiles = ["json", "yml", "yaml", "json5", "js", "cjs", "mjs", "ts", "cts", "mts", "toml"];

/** The known formatters by name. If there are several for one file, the first one that the project configures is used. */
export const knownFormatters: ReadonlyMap<string, KnownFormatter> = new Map<string, KnownFormatter>(
  Object.entries({
    biome: {
      extensions: [...scripts, ".json", ".jsonc", ".css", ".graphql"],
      command: ["biome", "format", "--write", "$FILE"],
      markers: files("biome.json", "biome.jsonc"),
    },
    prettier: {
      extensions: [
        ...scripts,
        ...styles,
        ".json",
        ".jsonc",
        ".html",
        ".vue",
        ".svelte",
        ".md",
        ".mdx",
        ".yaml",
        ".yml",
        ".graphql",
      ],
      command: ["prettier", "--write", "$FILE"],
      markers: [
        ...files(".prettierrc", ...prettierFiles.map((end) => `.prettierrc.${end}`)),
        ...files(...prettierFiles.map((end) => `prettier.config.${end}`)),
        { file: "package.json", text: /"prettier"\s*:/ },
      ],
    },
    gofmt: { extensions: [".go"], command: ["gofmt", "-w", "$FILE"], markers: files("go.mod") },
    rustfmt: {
      extensions: [".rs"],
      command: ["rustfmt", "$FILE"],
      markers: files("rustfmt.toml", ".rustfmt.toml"),
      // It formats the modules of the file too.
      changesOthers: true,
    },
    black: {
      extensions: python,
      command: ["black", "--quiet", "$FILE"],
      markers: [{ file: "pyproject.toml", text: /^\[tool\.black\b/m }],
    },
    ruff: {
      extensions: python,
      command: ["ruff", "format", "$FILE"],
      markers: [...files("ruff.toml", ".ruff.toml"), { file: "pyproject.toml", text: /^\[tool\.ruff\b/m }],
    },
    "clang-format": {
      extensions: [".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ino"],
      command: ["clang-format", "-i", "$FILE"],
      markers: files(".clang-format", "_clang-format"),
    },
    rubocop: {
      extensions: ruby,
      command: ["rubocop", "--autocorrect", "--fail-level", "fatal", "$FILE"],
      markers: files(".rubocop.yml"),
    },
    pint: { extensions: [".php"], command: ["pint", "$FILE"], markers: files("pint.json") },
    mix: {
      extensions: [".ex", ".exs", ".heex"],
      command: ["mix", "format", "$FILE"],
      markers: files(".formatter.exs"),
    },
    dart: { extensions: [".dart"], command: ["dart", "format", "$FILE"], markers: files("pubspec.yaml") },
    zig: { extensions: [".zig", ".zon"], command: ["zig", "fmt", "$FILE"], markers: files("build.zig") },
    gleam: { extensions: [".gleam"], command: ["gleam", "format", "$FILE"], markers: files("gleam.toml") },
    terraform: {
      extensions: [".tf", ".tfvars"],
      command: ["terraform", "fmt", "$FILE"],
      markers: files(".terraform.lock.hcl"),
    },
    ocamlformat: {
      extensions: [".ml", ".mli"],
      command: ["ocamlformat", "--inplace", "$FILE"],
      markers: files(".ocamlformat"),
    },
  }),
);
