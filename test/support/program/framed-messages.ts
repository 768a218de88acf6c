/** Reads the messages of the language server protocol from stdin: a header with the length, then the text. */
export function readFramedMessages(receive: (text: string) => void): void {
  let rest = Buffer.alloc(0);
  process.stdin.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (true) {
      const head = rest.indexOf("\r\n\r\n");
      const length = Number(
        /content-length: (\d+)/i.exec(rest.toString("latin1", 0, Math.max(0, head)))?.[1],
      );
      if (head === -1 || rest.length < head + 4 + length) return;
      const text = rest.toString("utf8", head + 4, head + 4 + length);
      rest = rest.subarray(head + 4 + length);
      receive(text);
    }
  });
}
