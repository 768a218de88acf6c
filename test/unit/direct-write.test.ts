import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { writeDirectly } from "../../src/acp/transport/direct-write.ts";
import { temporaryFolder } from "../support/temp.ts";

test("without a file of the system's, or for a long text, it is the stream's to write", () => {
  const text = "a line\n";
  expect(writeDirectly(new PassThrough(), text)).toBe(text);
  expect(writeDirectly(Object.assign(new PassThrough(), { fd: 1, isTTY: true }), text)).toBe(text);
  const long = text.repeat(10_000);
  expect(writeDirectly(Object.assign(new PassThrough(), { fd: 1 }), long)).toBe(long);
});

test.skipIf(process.platform === "win32")(
  "what a pipe takes and what is left for the stream are the text, also where the pipe is full or gone",
  async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "pipe");
    execFileSync("mkfifo", [path]);
    const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
    const output = Object.assign(new PassThrough(), { fd });
    // Of a length that ends within a character when the pipe is full.
    const line = `${"größer 🦊 ".repeat(800)}\n`;
    let left: string | Uint8Array | undefined;
    let lines = 0;
    for (; left === undefined; lines++) left = writeDirectly(output, line);
    expect(Buffer.from(left).length).toBeLessThan(Buffer.byteLength(line));
    const full = writeDirectly(output, line) ?? "";
    expect(Buffer.from(full).toString()).toBe(line);

    const read = Buffer.alloc(lines * Buffer.byteLength(line));
    const size = readSync(reading, read);
    const whole = Buffer.concat([read.subarray(0, size), Buffer.from(left)]);
    expect(whole.toString()).toBe(line.repeat(lines));
    closeSync(reading);
    expect(Buffer.from(writeDirectly(output, line) ?? "").toString()).toBe(line);
    closeSync(fd);
  },
);
