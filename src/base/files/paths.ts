import { isAbsolute, relative, sep } from "node:path";

/** Whether the path is the folder or lies under it. Both are absolute. */
export function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
