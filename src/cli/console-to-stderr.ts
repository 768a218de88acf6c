import { Console } from "node:console";
import { Writable } from "node:stream";

/** Lines printed per kind. */
const linesPerKind = 5;
/** Kinds counted separately; all others share one count. */
const kindLimit = 100;
/** Lines that share this many first characters are of one kind. */
const kindLength = 20;
/** Characters printed per line. */
const lineLength = 1_000;

/**
 * Creates a rate-limited console for libraries, which print a line per malformed client message: prints a few lines of
 * each kind, so that a faulty client cannot fill the disk.
 */
export function createLibraryConsole(output: NodeJS.WritableStream): Console {
  const counts = new Map<string, number>();
  const limited = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      const beginning = text.slice(0, kindLength);
      const kind = counts.has(beginning) || counts.size < kindLimit ? beginning : "";
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      if (count <= linesPerKind) output.write(truncate(text));
      if (count === linesPerKind) output.write("Further lines that begin like this are not printed.\n");
      done();
    },
  });
  return new Console(limited, limited);
}

function truncate(text: string): string {
  return text.length <= lineLength ? text : `${text.slice(0, lineLength)}…\n`;
}
