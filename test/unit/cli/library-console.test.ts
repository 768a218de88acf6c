import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { createLibraryConsole } from "../../../src/cli/console-to-stderr.ts";

test("the console of libraries prints a few lines of each kind", () => {
  const printed: string[] = [];
  const output = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      printed.push(text);
      done();
    },
  });
  const libraryConsole = createLibraryConsole(output);
  for (let count = 0; count < 1_000; count++) libraryConsole.error("A faulty message came", count);
  libraryConsole.warn("Something else");
  expect(printed).toHaveLength(7);
  expect(printed.slice(4)).toEqual([
    "A faulty message came 4\n",
    "Further lines that begin like this are not printed.\n",
    "Something else\n",
  ]);
});
