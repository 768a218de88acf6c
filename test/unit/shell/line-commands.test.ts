import { expect, test } from "vitest";
import { splitLine } from "../../../src/shell/line-commands.ts";

const lines: [line: string, ...commands: [text: string, exit: string][]][] = [
  ["npm test", ["npm test", "shown"]],
  ["cd a && npm test", ["cd a", "shown"], ["npm test", "shown"]],
  ["npm test; echo done", ["npm test", "hidden"], ["echo done", "shown"]],
  ["npm test\necho done", ["npm test", "hidden"], ["echo done", "shown"]],
  ["set -e; npm test; echo done", ["set -e", "hidden"], ["npm test", "shown"], ["echo done", "shown"]],
  ["npm test | tail", ["npm test", "hidden"], ["tail", "shown"]],
  [
    "set -o pipefail; npm test | tail",
    ["set -o pipefail", "hidden"],
    ["npm test", "shown"],
    ["tail", "shown"],
  ],
  ["npm test || true", ["npm test", "hidden"], ["true", "hidden"]],
  ["npm test || exit 1", ["npm test", "shown"], ["exit 1", "hidden"]],
  ["npm test || { echo no; exit 1; }", ["npm test", "shown"], ["echo no", "hidden"], ["exit 1", "hidden"]],
  ["a || b && npm test", ["a", "hidden"], ["b", "hidden"], ["npm test", "shown"]],
  ["! npm test", ["npm test", "hidden"]],
  ["npm test &", ["npm test", "background"]],
  ["npm test > a.log 2>&1 & wait", ["npm test > a.log 2>&1", "background"], ["wait", "shown"]],
  ["(cd a && npm test) 2>&1", ["cd a", "shown"], ["npm test", "shown"]],
  ["bash -c 'cd a && npm test'", ["cd a", "shown"], ["npm test", "shown"]],
  ["bash -c 'npm test; true'", ["npm test", "hidden"], ["true", "shown"]],
  ["for i in 1 2; do npm test; done", ["for i in 1 2; do npm test; done", "hidden"]],
  ["if npm test; then echo yes; fi", ["if npm test; then echo yes; fi", "hidden"]],
  ["npm test 'unclosed", ["npm test 'unclosed", "hidden"]],
];

test.each(lines)("the commands of %j, and whether its exit code shows their success", (line, ...commands) => {
  expect(splitLine(line).map(({ text, exit }) => [text, exit])).toEqual(commands);
});
