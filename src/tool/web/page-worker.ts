import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import { readPage } from "./web-page.ts";

/** Input of the thread: a page and the wanted format. */
const taskSchema = z.object({
  bytes: z.instanceof(Uint8Array),
  contentType: z.string(),
  url: z.string(),
  format: z.enum(["markdown", "text", "html"]),
});

const { bytes, url, contentType, format } = taskSchema.parse(workerData);
parentPort?.postMessage(readPage({ bytes: Buffer.from(bytes), contentType, url: new URL(url) }, format), []);
