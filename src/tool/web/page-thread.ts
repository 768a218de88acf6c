import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { z } from "zod";
import { mayBeHtml, type Page, type PageContent, type PageFormat, readPage } from "./web-page.ts";

/** Smaller pages are converted faster than a thread starts. */
const ownThreadBytes = 256 * 1024;

/**
 * Converts a page for the model. Large pages take seconds, so they are converted in a worker thread. Rejects when
 * aborted.
 */
export async function readPageInWorker(
  page: Page,
  format: PageFormat,
  signal: AbortSignal,
): Promise<PageContent> {
  const isLarge = page.bytes.length > ownThreadBytes && mayBeHtml(page.contentType);
  if (!isLarge || format === "html") return readPage(page, format);
  signal.throwIfAborted();
  const task = { ...page, url: page.url.href, format };
  const worker = new Worker(workerProgram, { workerData: task, stdout: true, stderr: true });
  try {
    const answer: unknown[] = await once(worker, "message", { signal });
    return contentSchema.parse(answer[0]);
  } finally {
    await worker.terminate();
  }
}

const contentSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string() }),
  z.object({ kind: z.enum(["image", "binary"]), mime: z.string() }),
]);

/** Next to this file, in the sources and in the bundle. */
const workerProgram = new URL(
  import.meta.url.endsWith(".ts") ? "./page-worker.ts" : "./page-worker.cjs",
  import.meta.url,
);
