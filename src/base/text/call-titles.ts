import { beginningOf } from "./excerpt.ts";

/** Maximum characters of a call's title. Commands are their own titles and are shown whole. */
export const titleLimit = 80;

/** Maximum characters of a text that a title quotes. */
const quoteLimit = 40;

/** Returns the title of a call about a path; a long path loses its beginning, so that the file's name remains. */
export function titleOfPath(verb: string, path: string, note = ""): string {
  const end = note === "" ? "" : ` (${note})`;
  return `${verb} ${shortenPath(path, titleLimit - verb.length - 1 - end.length)}${end}`;
}

/** Returns the title of a call about any other object. */
export const titleOfObject = (verb: string, object: string): string => shortenTitle(`${verb} ${object}`);

/** Returns the title of a search for a text; `folder` is "." for the working directory. */
export function titleOfSearch(verb: string, quoted: string, folder: string): string {
  const place = folder === "." ? "" : ` in ${folder}`;
  const start = `${verb} ${shorten(quoted, place === "" ? titleLimit - verb.length - 1 : quoteLimit)}`;
  return place === "" ? start : titleOfPath(`${start} in`, folder);
}

/** Returns the title as one line of limited length, with the end whole. */
export const shortenTitle = (title: string, end = ""): string =>
  `${shorten(title, titleLimit - end.length)}${end}`;

function shorten(text: string, limit: number): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= limit ? line : `${beginningOf(line, limit - 1)}…`;
}

function shortenPath(path: string, limit: number): string {
  const line = path.replaceAll(/\s/g, " ");
  return line.length <= limit ? line : `…${line.slice(1 - limit).toWellFormed()}`;
}
