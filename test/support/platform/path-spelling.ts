import { pathToFileURL } from "node:url";

/** Returns a folder with `/` between its parts, as {@link useSlashes} writes it. */
export const withSlashes = (folder: string): string =>
  isWindowsPath(folder) ? folder.replaceAll("\\", "/") : folder;

/**
 * Rewrites these folders and the paths in them with `/`, and their URIs without the additional one: then a text from
 * Windows differs from a POSIX one only by the names of the folders. Finds them with each separator, also in JSON.
 */
export function useSlashes(text: string, folders: readonly string[]): string {
  const longestFirst = folders.filter(isWindowsPath).toSorted((one, other) => other.length - one.length);
  return longestFirst.reduce((changed, folder) => {
    const plain = withSlashes(folder);
    const [drive, ...parts] = folder.split(/[/\\]/).map(escape);
    const anySpelling = new RegExp(
      `${drive}(\\\\+|/)${parts.join("\\1")}((?:\\1[^\\s"'\`<>|?*:;,()\\\\/]+)*\\1?)`,
      "g",
    );
    return changed
      .replaceAll(pathToFileURL(folder, { windows: true }).href, `file://${plain}`)
      .replaceAll(
        anySpelling,
        (_, separator: string, rest: string) => plain + rest.replaceAll(separator, "/"),
      );
  }, text);
}

const isWindowsPath = (path: string): boolean => /^[A-Za-z]:[/\\]./.test(path);

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
