import { Console } from "node:console";
import { Writable } from "node:stream";

/** Lines of one kind, which begin alike, that are printed; kinds that are told apart; characters of a line. */
const linesOfKind = 5;
const kindsLimit = 100;
const kindLength = 20;
const lineLength = 1_000;

/**
 * A console for libraries, which print a line for each odd message of a client: a few of each kind are enough for
 * whoever looks for the reason, and no more of them fills a disk.
 */
export function libraryConsole(output: NodeJS.WritableStream): Console {
  const counts = new Map<string, number>();
  const few = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      const beginning = text.slice(0, kindLength);
      const kind = counts.has(beginning) || counts.size < kindsLimit ? beginning : "";
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      if (count <= linesOfKind) output.write(cut(text));
      if (count === linesOfKind) output.write("More that begins like this is not printed.\n");
      done();
    },
  });
  return new Console(few, few);
}

function cut(text: string): string {
  return text.length <= lineLength ? text : `${text.slice(0, lineLength)}…\n`;
}
