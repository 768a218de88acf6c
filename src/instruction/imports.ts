import { dirname, join, resolve } from "node:path";

/** How deep imports may import, and imports per file. */
export const importDepthLimit = 5;
const importsLimit = 50;

/** An import of a file, as `@path` in its text. */
export interface FoundImport {
  readonly written: string;
  /** Absolute. */
  readonly path: string;
  /** Whether the text is certainly meant as a path, so that a missing file is worth a note. */
  readonly isCertain: boolean;
}

/** Finds the imports of a text, except in code. Relative paths are resolved from the file's folder. */
export function findImports(text: string, file: string, home: string): FoundImport[] {
  const found = [...omitCode(text).matchAll(/(?:^|[\s(])@((?:\\ |[^\s\\`])+)/gm)];
  const written = [...new Set(found.map(([, path = ""]) => path.replace(/[.,;:)!?'"]+$/, "")))];
  return written
    .filter((path) => path !== "")
    .slice(0, importsLimit)
    .map((path) => ({
      written: path,
      path: toAbsolute(path.replaceAll("\\ ", " "), file, home),
      isCertain: /^(?:\.{1,2}|~)?\//.test(path) || path.endsWith(".md"),
    }));
}

function toAbsolute(path: string, file: string, home: string): string {
  return path.startsWith("~/") ? join(home, path.slice(2)) : resolve(dirname(file), path);
}

/** Removes fenced and inline code. */
function omitCode(text: string): string {
  let fence = "";
  const lines = text.split("\n").filter((line) => {
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === "" && mark !== undefined) fence = mark;
    else if (fence !== "" && mark?.startsWith(fence) === true) {
      fence = "";
      return false;
    }
    return fence === "";
  });
  return lines.join("\n").replaceAll(/(`+)[^`].*?\1/g, "");
}
