import { fstatSync } from "node:fs";
import { orAfter } from "../../base/async.ts";
import { writeNotice } from "./output.ts";

/** Silence after which a pipe of another program that sends nothing is taken for none. */
const silenceMs = 1_000;
/** Silence of a shell's pipe after which the person is told what is waited for. */
const patienceMs = 2_000;
/** Bytes that are read; a model's context holds less. */
const limitBytes = 10 * 1024 * 1024;

/**
 * The text that was piped into the program; nothing on a terminal. A shell's pipe is waited for to its end. A program
 * that starts this one often leaves an open pipe behind in which nothing will ever come: where not even a first byte
 * comes soon, that counts as none, unless `isExpected`.
 */
export async function pipedText(
  input: NodeJS.ReadStream & { fd: number },
  isExpected: boolean,
): Promise<string> {
  if (input.isTTY) return "";
  const text = readAll(input);
  const first = new Promise<void>((resolve) => {
    input
      .once("readable", resolve)
      .once("end", resolve)
      .once("error", () => resolve());
  });
  const isShellPipe = isExpected || isFifo(input.fd);
  const early = await orAfter(
    first.then(() => "begun"),
    isShellPipe ? patienceMs : silenceMs,
    "silent",
  );
  if (early === "begun") return text;
  if (isShellPipe) {
    writeNotice("waiting for stdin to end (where nothing is to come, start with < /dev/null)");
    return text;
  }
  writeNotice(
    "stdin is open and nothing comes; going on without it (a - behind the prompt would wait for it)",
  );
  // Nobody waits for it any more: what `destroy` breaks off is nothing.
  text.catch(() => {});
  input.destroy();
  return "";
}

async function readAll(input: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    chunks.push(Buffer.from(chunk));
    bytes += chunks.at(-1)?.length ?? 0;
    if (bytes <= limitBytes) continue;
    writeNotice(`stdin has more than ${limitBytes / 1024 / 1024} MB; the rest is not read`);
    break;
  }
  return Buffer.concat(chunks).subarray(0, limitBytes).toString("utf8");
}

function isFifo(fd: number): boolean {
  return fstatSync(fd).isFIFO();
}
