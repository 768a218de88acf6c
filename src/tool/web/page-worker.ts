import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import { readPage } from "./web-page.ts";

/** What the thread is asked: a page as it came, and what to make of it. */
const taskSchema = z.object({
  bytes: z.instanceof(Uint8Array),
  contentType: z.string(),
  url: z.string(),
  format: z.enum(["markdown", "text", "html"]),
});

const { bytes, url, contentType, format } = taskSchema.parse(workerData);
parentPort?.postMessage(readPage({ bytes: Buffer.from(bytes), contentType, url: new URL(url) }, format), []);
