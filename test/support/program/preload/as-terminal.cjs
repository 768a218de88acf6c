// Loaded into the program before it: its streams say that they are terminals, so that it asks; answers come from a pipe.
// With TERMINAL_COLUMNS they can also draw and read single keys. The server it starts is no terminal's.
const columns = Number(process.env["TERMINAL_COLUMNS"] ?? 0);
if (columns === 0 || process.argv[2] !== "acp") {
  for (const stream of [process.stdin, process.stdout, process.stderr])
    Object.defineProperty(stream, "isTTY", { value: true });
  if (columns > 0) {
    process.stdin.setRawMode = () => process.stdin;
    for (const stream of [process.stdout, process.stderr]) Object.assign(stream, { columns, rows: 40 });
  }
}
