import type { Readable } from "node:stream";

/**
 * Node stops reading when the person puts the program aside (Ctrl-Z). From here on the input is read again once it is
 * taken up; answers what ends that, and the reading too: an input that flows keeps a program from ending.
 */
export function readOnWhenTakenUp(input: Readable): () => void {
  // Behind Node's own listener, which pauses the input only then.
  const readOn = () => setImmediate(() => input.resume());
  process.on("SIGCONT", readOn);
  return () => {
    process.off("SIGCONT", readOn);
    input.pause();
  };
}
