// Loaded into the program before it: its streams say that they are terminals, so that it asks; answers come from a pipe.
for (const stream of [process.stdin, process.stdout, process.stderr])
  Object.defineProperty(stream, "isTTY", { value: true });
