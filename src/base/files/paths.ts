import { isAbsolute, relative, sep } from "node:path";

/** True when the path is the folder or lies in it. Both are absolute. */
export function isBelow(path: string, folder: string): boolean {
  const route = relative(folder, path);
  return route !== ".." && !route.startsWith(`..${sep}`) && !isAbsolute(route);
}
