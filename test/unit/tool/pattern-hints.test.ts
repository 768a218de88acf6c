import { expect, test } from "vitest";
import { explainGlob } from "../../../src/tool/search/pattern-hints.ts";

const folder = String.raw`C:\work\src`;

test.each([
  [String.raw`src\*.ts`, /leave out its own folders/],
  ["src/*.ts", /leave out its own folders/],
  [String.raw`..\*.ts`, /does not lead out of the folder/],
  [String.raw`lib\*.ts`, undefined],
])("explains %s on Windows, where a backslash separates folders", (glob, reason) => {
  const explained = explainGlob(glob, folder, "\\");
  if (reason === undefined) expect(explained).toBeUndefined();
  else expect(explained).toMatch(reason);
});
