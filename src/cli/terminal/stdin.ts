import { fstatSync } from "node:fs";
import { orAfter } from "../../base/async.ts";
import { UsageError } from "../command-line/usage.ts";
import { writeNotice } from "./output.ts";

/** Wait for the first byte of a pipe that is not a shell's, before it is ignored. */
const silenceMs = 1_000;
/** Wait for the first byte of a shell's pipe, before a notice is printed. */
const noticeDelayMs = 2_000;
/** Maximum bytes read; about as much as the largest contexts hold. */
const limitBytes = 2 * 1024 * 1024;

export interface PipedText {
  readonly text: string;
  /** Whether there was more text than the limit. */
  readonly isCut: boolean;
}

const noText: PipedText = { text: "", isCut: false };

/**
 * Reads the text piped into the program; empty on a terminal. Reads a shell's pipe to its end. Parent programs often
 * leave an unused pipe open: one without a first byte within {@link silenceMs} counts as empty, unless `isExpected`.
 * Throws {@link UsageError} if the input is not text.
 */
export async function readPipedText(
  input: NodeJS.ReadStream & { fd: number },
  isExpected: boolean,
): Promise<PipedText> {
  if (input.isTTY) return noText;
  const text = readAll(input);
  const first = new Promise<void>((resolve) => {
    input
      .once("readable", resolve)
      .once("end", resolve)
      .once("error", () => resolve());
  });
  const isShellPipe = isExpected || isFifo(input.fd);
  const early = await orAfter(
    first.then(() => "started"),
    isShellPipe ? noticeDelayMs : silenceMs,
    "silent",
  );
  if (early === "started") return text;
  if (isShellPipe) {
    writeNotice("waiting for stdin to end (without input, start with < /dev/null)");
    return text;
  }
  writeNotice("stdin is open but silent; continuing without it (add - after the prompt to wait for it)");
  // The text is no longer needed: ignore the error caused by `destroy`.
  text.catch(() => {});
  input.destroy();
  return noText;
}

async function readAll(input: NodeJS.ReadStream): Promise<PipedText> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    chunks.push(Buffer.from(chunk));
    bytes += chunks.at(-1)?.length ?? 0;
    if (bytes <= limitBytes) continue;
    writeNotice(`stdin has more than ${limitBytes / 1024 / 1024} MB; the rest is not read`);
    break;
  }
  const isCut = bytes > limitBytes;
  return { text: decode(Buffer.concat(chunks).subarray(0, limitBytes), isCut), isCut };
}

/** Decodes UTF-8. A character that the limit cut in half is omitted. */
function decode(bytes: Buffer, isCut: boolean): string {
  if (bytes.includes(0)) throw notText();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    throw notText();
  }
}

const notText = () =>
  new UsageError(
    "stdin is not text in UTF-8. Convert it (iconv), or attach a file with --file, such as an image",
    "run",
  );

function isFifo(fd: number): boolean {
  return fstatSync(fd).isFIFO();
}
