import { basename, dirname, isAbsolute, join, normalize, relative } from "node:path/posix";
import { isBelow } from "../../base/files/paths.ts";
import { matchesWildcards } from "../../base/text/wildcards.ts";
import type { EvalContext, Scan, ShellEffect } from "../facts.ts";
import type { Argument, Value } from "./word.ts";

/** How a command uses a path: a `visible` path is only named, and checked to be inside the workspace. */
type Access = "read" | "write" | "visible";

export interface PathUse {
  access: Access;
  /** The path is a folder; otherwise its parent folder is checked. */
  folder?: boolean;
  /** Everything below it is changed too. */
  below?: boolean;
  /** Everything below it is read too. */
  within?: boolean;
  /** Links below it are followed. */
  follows?: boolean;
  /** It is deleted. */
  removes?: boolean;
}

/** Maximum length of a path; longer words, and words with line breaks, are text. */
const pathLimit = 4096;

const harmlessDevice = /^\/dev\/(?:null|zero|full|random|urandom|tty|stdin|stdout|stderr|fd\/\d+)$/;
const address = /^[a-z][a-z0-9+.-]*:\/\//i;
const systemFolders = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/** Paths that resolve differently for each process. */
const throughProcess = /^\/(?:proc\/(?:self|thread-self|\d+)|dev\/fd)\//;

/** Whether a program is in a system folder, where only administrators install programs. */
export function isSystemProgram(path: string): boolean {
  return systemFolders.includes(dirname(path));
}

/** Adds the use of a path that an argument names. */
export function addPath(scan: Scan, argument: Argument, use: PathUse, evalContext: EvalContext): void {
  if (!argument.values)
    return addUnknownPath(scan, argument.text, use, "its path cannot be known before it runs");
  for (const value of argument.values) addValuePath(scan, value, use, evalContext);
}

/** Adds a file with the names of files to read, which are unknown. */
export function addFileList(scan: Scan, list: Argument, evalContext: EvalContext): void {
  addPath(scan, list, { access: "read" }, evalContext);
  addUnknownPath(
    scan,
    list.text,
    { access: "read" },
    "the files that it names cannot be known before it runs",
  );
}

/** Adds an unknown path, which only a rule for everything allows. */
export function addUnknownPath(scan: Scan, text: string, use: PathUse, opaque: string): void {
  const part = { text, opaque, similar: [] };
  if (use.access !== "visible")
    scan.add({ ...part, type: use.access, reason: `${describeAccess(use)} ${text}` });
  scan.add({ ...part, type: "outside", reason: `may use a folder outside the workspace` });
}

/**
 * Adds the paths in a word of any command: `/a`, `--out=/a`, `-I/a`, `of=/a`, `@/a`, `file:///a`,
 * `/a:/inside/of/a/container`. With `read`, words with a dot, a slash or a wildcard count as files that are read.
 */
export function addVisiblePaths(
  scan: Scan,
  argument: Argument,
  evalContext: EvalContext,
  access: "visible" | "read" = "visible",
): void {
  if (!argument.values) {
    const isPath = argument.text.includes("/") && !address.test(argument.text);
    if (isPath) addPath(scan, argument, { access: "visible" }, evalContext);
    return;
  }
  for (const value of argument.values) {
    for (const text of findPathsInWord(value.text)) {
      const isFile = /[./]/.test(text) || value.glob;
      addValuePath(scan, { ...value, text }, { access: isFile ? access : "visible" }, evalContext);
    }
  }
}

/** `-I/a`: a path attached to a short option. */
export const attachedPath = /^-[A-Za-z]((?:\/|\.\.\/).*)$/s;

function findPathsInWord(word: string): string[] {
  if (word === "" || word.length > pathLimit || word.includes("\n")) return [];
  const file = parseFileUrl(word);
  if (file !== undefined) return [file];
  if (address.test(word)) return [];
  const assigned = /^(?:--?)?[\w.-]+=(.+)$/s.exec(word)?.[1];
  if (assigned !== undefined) return assigned.split(/,(?=[\w-]+=)/).flatMap(findPathsInWord);
  const mounted = /^(\/[^:]*):\/[^:]*(?::[a-zA-Z,]+)?$/.exec(word)?.[1];
  if (mounted !== undefined) return [mounted];
  if (word.startsWith("@")) return [word.slice(1)].filter((path) => path.includes("/"));
  const attached = attachedPath.exec(word)?.[1];
  if (attached !== undefined) return [attached];
  return word.startsWith("-") ? [] : [word];
}

/** Returns the path in `file:///a` and `file:a`; undefined for other URLs. */
export function parseFileUrl(url: string): string | undefined {
  const path = /^file:(?:\/\/[^/]*)?(.*)$/is.exec(url)?.[1];
  return path?.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function addValuePath(scan: Scan, named: Value, use: PathUse, evalContext: EvalContext): void {
  const value = readValue(scan, named);
  const { text } = value;
  if (text === "" || text === "-" || text.length > pathLimit) return;
  if (/^\/dev\/(?:tcp|udp)\//.test(text))
    return addUnknownPath(scan, text, use, "it opens a network connection");
  if (isAbsolute(text)) return addPathFrom(scan, "/", value, use, evalContext);
  if (!evalContext.workingDirs) {
    if (use.access === "visible" && !text.includes("/") && text !== "..") return;
    return addUnknownPath(scan, text, use, "the folder it is in cannot be known before it runs");
  }
  for (const base of evalContext.workingDirs) addPathFrom(scan, base, value, use, evalContext);
}

/** Returns the value with its paths in the form that the analysis uses. */
function readValue({ context }: Scan, value: Value): Value {
  if (context.readPath === undefined) return value;
  const { text, written } = value;
  return {
    ...value,
    text: context.readPath(text),
    ...(written !== undefined && { written: context.readPath(written) }),
  };
}

function addPathFrom(scan: Scan, base: string, value: Value, use: PathUse, evalContext: EvalContext): void {
  if (value.written !== undefined)
    addPathFrom(scan, base, { text: value.written, glob: false }, use, evalContext);
  const written = isAbsolute(value.text) ? value.text : join(base, value.text);
  if (!value.glob && harmlessDevice.test(normalize(written))) return;
  if (throughProcess.test(normalize(written)))
    return addUnknownPath(scan, value.text, use, "it leads through a running process");
  const real = value.glob ? resolveGlob(scan, base, value.text) : scan.realPath(base, value.text);
  if (real === undefined)
    return addUnknownPath(scan, value.text, use, "`..` after a wildcard may lead anywhere");
  const also = omitSpelling(real, [
    showPath(scan, normalize(written)),
    shortenPath(scan, normalize(written)),
    value.text,
  ]);
  if (!isInRoots(scan, real)) addExternal(scan, real, value, { ...use, folder: use.folder ?? false }, also);
  else if (use.follows) addFollowedLinks(scan, real, value, evalContext);
  if (use.access === "visible") return;
  if (use.removes && !value.glob) addRemovedLink(scan, base, value.text, real);
  const text = shortenPath(scan, real);
  if (evalContext.hasWideGlobs && value.glob && value.text.includes("**"))
    return addUnknownPath(scan, value.text, use, "`**` may lead into any folder");
  const found = value.names ?? (value.glob ? listMatches(scan, real, evalContext.hasWideGlobs) : undefined);
  for (const name of found ?? [])
    if (scan.realPath("/", name) !== name)
      addPathFrom(scan, "/", { text: name, glob: false }, use, evalContext);
  const names = found
    ?.flatMap((name) => [name, scan.realPath("/", name)])
    .flatMap((name) => [name, shortenPath(scan, name)]);
  const critical =
    use.access === "write"
      ? findCriticalReason(scan, [real, normalize(written), ...(names ?? [])], use)
      : undefined;
  scan.add({
    type: use.access,
    text,
    also: omitSpelling(text, [showPath(scan, real), ...also]),
    ...(value.glob && { glob: true }),
    ...(names &&
      use.access === "read" &&
      (value.names ?? !evalContext.hasWideGlobs) && { names: [...new Set(names)] }),
    ...(use.below && { below: true }),
    ...(use.within && { within: true }),
    ...(critical && { critical }),
    reason: `${describeAccess(use)} ${text}`,
    similar: critical ? [] : createFilePatterns(text, value.glob),
  });
}

/** Returns the real paths of the files that a pattern matches; undefined if unknown. */
export function listGlobMatches(scan: Scan, pattern: string, base: string): string[] | undefined {
  const real = resolveGlob(scan, base, pattern);
  const found = real === undefined ? undefined : listMatches(scan, real, false);
  return found?.map((path) => scan.realPath("/", path));
}

/** Adds the targets outside the workspace of links below a folder. */
function addFollowedLinks(scan: Scan, real: string, { text, glob }: Value, evalContext: EvalContext): void {
  const folders = glob ? listMatches(scan, real, evalContext.hasWideGlobs) : [real];
  const outside = folders && !scan.areListingsStale ? findLinksOutside(scan, folders) : undefined;
  if (outside === undefined)
    return addUnknownPath(scan, text, { access: "visible" }, "links in it may lead out of the workspace");
  for (const path of outside)
    addExternal(scan, path, { text: path, glob: false }, { access: "visible", folder: true }, []);
}

/** Maximum number of entries to check for links; above, the targets are unknown. */
const followedLimit = 2_000;

/** Returns targets outside the workspace, also through several links; undefined above the limit. */
function findLinksOutside(scan: Scan, folders: readonly string[]): string[] | undefined {
  const seen = new Set(folders);
  const outside = new Set<string>();
  for (const folder of seen) {
    for (const name of scan.context.list?.(folder) ?? []) {
      const real = scan.realPath(folder, name);
      (isInRoots(scan, real) ? seen : outside).add(real);
    }
    if (seen.size + outside.size > followedLimit) return undefined;
  }
  return [...outside];
}

/** Adds the removal of a link itself, not of its target. */
function addRemovedLink(scan: Scan, base: string, path: string, real: string): void {
  const link = join(scan.realPath(base, dirname(path)), basename(path));
  if (link === real || !isInRoots(scan, link) || /^\.{1,2}$/.test(basename(path))) return;
  const critical = findCriticalReason(scan, [link], { access: "write", removes: true });
  const text = shortenPath(scan, link);
  const similar = critical === undefined ? createFilePatterns(text, false) : [];
  scan.add({ type: "write", text, ...(critical && { critical }), reason: `removes ${text}`, similar });
}

function addExternal(scan: Scan, real: string, value: Value, use: PathUse, also: readonly string[]): void {
  const folder = use.folder ? real : dirname(real);
  const text = showPath(scan, folder);
  const part: ShellEffect = {
    type: "outside",
    text,
    also: omitSpelling(text, [showPath(scan, real), ...also]),
    reason: `uses ${showPath(scan, real)}, which is outside the workspace`,
    similar:
      value.glob || dirname(folder) === folder || isBelow(scan.context.home, folder)
        ? []
        : createFolderPatterns(text),
  };
  scan.add(value.glob ? { ...part, glob: true } : part);
}

/** Returns why a change is critical; undefined if it is not. */
function findCriticalReason(scan: Scan, paths: readonly string[], use: PathUse): string | undefined {
  for (const path of paths) {
    const reason = scan.context.findCriticalReason(path, use.below ?? false);
    if (reason !== undefined) return reason;
  }
  const gone = use.removes ? paths.map((path) => (path.endsWith("/*") ? dirname(path) : path)) : [];
  const isWhole = gone.some((path) => scan.context.roots.some((root) => isBelow(root, path)));
  return isWhole ? "it removes the whole workspace" : undefined;
}

/** Maximum number of matches to list; above, the pattern itself is judged. */
const namesLimit = 1000;

/** Lists the files that match a pattern; undefined if unknown. Hidden files only if the pattern or `all` says so. */
function listMatches(scan: Scan, pattern: string, all: boolean): string[] | undefined {
  const { context } = scan;
  if (!context.list) return undefined;
  let found = [""];
  for (const component of pattern.split("/").slice(1)) {
    found = /[*?]/.test(component)
      ? found.flatMap((folder) =>
          filterMatches(context.list?.(folder || "/") ?? [], component, all).map(
            (name) => `${folder}/${name}`,
          ),
        )
      : found.map((folder) => `${folder}/${component}`);
    if (found.length > namesLimit) return undefined;
  }
  return found;
}

function filterMatches(names: readonly string[], component: string, all: boolean): string[] {
  return names.filter(
    (name) =>
      (all || !name.startsWith(".") || component.startsWith(".")) && matchesWildcards(component, name),
  );
}

/** Whether a variable or a wildcard may turn the word into an option. */
export function mayBeOption(scan: Scan, { text, values }: Argument, { workingDirs }: EvalContext): boolean {
  if (text.startsWith("-") || values === undefined) return false;
  return values.some((value) => {
    const [first = ""] = value.text.split("/");
    if (!value.glob || !/^[*?]/.test(first)) return value.text.startsWith("-");
    return workingDirs?.some((base) => listMatchesIn(scan, base, first).some((name) => name.startsWith("-")));
  });
}

function listMatchesIn(scan: Scan, folder: string, component: string): string[] {
  return filterMatches(scan.context.list?.(folder) ?? [], component, false);
}

function isInRoots(scan: Scan, path: string): boolean {
  return scan.context.roots.some((root) => isBelow(path, root));
}

function createFolderPatterns(folder: string): string[] {
  return /[*?]/.test(folder) ? [] : [folder, `${folder}/*`];
}

function createFilePatterns(text: string, glob: boolean): string[] {
  return glob || /[*?]/.test(text) ? [] : [text];
}

/** Resolves links up to the first component with a wildcard; undefined if `..` follows it. */
function resolveGlob(scan: Scan, base: string, path: string): string | undefined {
  const components = path.split("/");
  const first = components.findIndex((component) => /[*?]/.test(component));
  const rest = components.slice(first);
  if (rest.includes("..")) return undefined;
  const fixed = components.slice(0, first).join("/");
  const folder = scan.realPath(base, fixed === "" ? (path.startsWith("/") ? "/" : ".") : fixed);
  return join(folder, ...rest);
}

/** Returns the path relative to `cwd` if it is below it, else absolute. */
function shortenPath(scan: Scan, path: string): string {
  const cwd = scan.context.cwd;
  return isBelow(path, cwd) ? relative(cwd, path) || "." : showPath(scan, path);
}

function showPath({ context }: Scan, path: string): string {
  return context.showPath?.(path) ?? path;
}

function omitSpelling(text: string, spellings: readonly string[]): string[] {
  return [...new Set(spellings)].filter((spelling) => spelling !== text);
}

function describeAccess(use: PathUse): string {
  return use.access === "write" ? "writes" : use.access === "read" ? "reads" : "uses";
}
