import type { Readable } from "node:stream";

/**
 * Resumes the input after a job-control suspend (Ctrl-Z, then `fg`), which makes Node stop reading. Returns a function
 * that stops this and pauses the input: an input that is read keeps the process alive.
 */
export function resumeInputAfterSuspend(input: Readable): () => void {
  // Node's own SIGCONT listener pauses the input, so resume after it.
  const resume = () => setImmediate(() => input.resume());
  process.on("SIGCONT", resume);
  return () => {
    process.off("SIGCONT", resume);
    input.pause();
  };
}
