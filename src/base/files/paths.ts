import { isAbsolute, relative, sep } from "node:path";

/** Returns the path with `/` as separator, as in rules, patterns and git. `separator` is that of the system. */
export function toSlashes(path: string, separator: string = sep): string {
  return separator === "/" ? path : path.replaceAll(separator, "/");
}

/** True when the path is the folder or lies in it. Both are absolute. */
export function isBelow(path: string, folder: string): boolean {
  const route = relative(folder, path);
  return route !== ".." && !route.startsWith(`..${sep}`) && !isAbsolute(route);
}
