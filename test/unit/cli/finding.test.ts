import { expect, test } from "vitest";
import { formatFinding } from "../../../src/cli/doctor/finding.ts";
import { styleFor } from "../../../src/cli/terminal/style.ts";

const style = styleFor({ isTTY: false }, {});
const finding = {
  what: "Configuration",
  found: "a problem with a description that is longer than one line of a narrow terminal",
  todo: 'fairlead.json:3:14: permission.edits: "edits" is not a permission; did you mean "edit"?',
};

test("a finding is wrapped at the width of the terminal", () => {
  expect(formatFinding(finding, { style, width: 60 }).split("\n")).toEqual([
    "todo Configuration  a problem with a description that is",
    "     longer than one line of a narrow terminal",
    '     fairlead.json:3:14: permission.edits: "edits" is not a',
    '     permission; did you mean "edit"?',
  ]);
  expect(formatFinding(finding, { style, width: 100 }).split("\n")).toEqual([
    "todo Configuration  a problem with a description that is longer than one line of a narrow terminal",
    '     fairlead.json:3:14: permission.edits: "edits" is not a permission; did you mean "edit"?',
  ]);
});

test("a pipe gets each finding in one line, and its advice in another", () => {
  const width = Number.POSITIVE_INFINITY;
  expect(formatFinding(finding, { style, width }).split("\n")).toHaveLength(2);
});
