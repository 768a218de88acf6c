import { readFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Secrets } from "../../src/base/secrets/secrets.ts";
import { BashOutput, type OutputResult } from "../../src/tool/bash/bash-output.ts";
import { ProcessOutput } from "../../src/workspace/process/process-output.ts";
import { tries } from "../support/run-length.ts";
import { temporaryFolder } from "../support/temp.ts";

const key = "sk-12345678";
const printed = fc.constantFrom(
  "a",
  "plain words\n",
  "\n",
  "\r",
  "\r\n",
  "50%\r",
  "\x1b[31mred\x1b[0m",
  "\x1b",
  "x\b",
  "\t",
  "é",
  "\u{1f600}",
  "\u009b1m",
  key,
  key.slice(0, 5),
  `${"long line ".repeat(40)}\n`,
  "many lines\n".repeat(300),
);
const cuts = fc.array(fc.nat({ max: 2_000 }), { maxLength: 12 });

test("a command's output is the same however it is split, as bytes or as text", async () => {
  await using folder = await temporaryFolder();
  const property = fc.asyncProperty(
    fc.array(printed, { maxLength: 40 }),
    fc.integer({ min: 1, max: 30 }),
    cuts,
    async (pieces, times, lengths) => {
      const text = pieces.join("").repeat(times);
      const redacted = new Secrets();
      redacted.add([key]);
      expect(whole(await throughPipe(Buffer.from(text), lengths, folder.path))).toEqual(
        whole(await asOneText(redacted.redact(text), folder.path)),
      );
    },
  );
  await fc.assert(property, { numRuns: tries(500) });
});

test("half a character is shown at its place", async () => {
  await using folder = await temporaryFolder();
  const bytes = Buffer.from("before\xc3behind\n", "latin1");
  const shown = await throughPipe(bytes, [7], folder.path);
  expect(shown.text).toBe("before\ufffdbehind\n");
});

/** With the stored file's content in place of its name. */
function whole({ text, path, truncated }: OutputResult) {
  const stored = path === undefined ? undefined : readFileSync(path, "utf8");
  return { text: path === undefined ? text : text.replaceAll(path, "file"), kept: stored, truncated };
}

async function asOneText(text: string, folder: string): Promise<OutputResult> {
  const output = new BashOutput({ limits: { folder }, show: () => {}, waitUntilReady: async () => {} });
  await output.push(text);
  const shown = await output.end();
  await output.close();
  return shown;
}

/** In chunks of these lengths, the remaining text at once. */
async function throughPipe(bytes: Buffer, lengths: readonly number[], folder: string): Promise<OutputResult> {
  const pipe = new PassThrough();
  const output = new BashOutput({ limits: { folder }, show: () => {}, waitUntilReady: async () => {} });
  const secrets = new Secrets();
  secrets.add([key]);
  const redacted = secrets.redactStream();
  const read = new ProcessOutput(pipe, (piece) => output.push(redacted.push(piece)));
  let start = 0;
  for (const length of lengths) {
    pipe.write(bytes.subarray(start, start + length));
    start += length;
    await new Promise(setImmediate);
  }
  pipe.end(bytes.subarray(start));
  await read.done;
  await output.push(redacted.end());
  const shown = await output.end();
  await output.close();
  return shown;
}
