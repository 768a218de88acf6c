import { z } from "zod";
import description from "../../../prompts/tools/webfetch.md";
import { defineTool } from "../tool.ts";
import type { Tool } from "../tool.ts";
import type { Lookup } from "./web-request.ts";

const usualTimeoutS = 30;
const timeoutLimitS = 120;
const urlLimit = 8_000;

const inputSchema = z.object({
  url: z.string().max(urlLimit).describe("The whole address, beginning with https:// or http://"),
  format: z
    .enum(["markdown", "text", "html"])
    .optional()
    .describe("How a page is returned: markdown when left out, its bare text, or its HTML"),
  timeout: z
    .number()
    .positive()
    .max(timeoutLimitS)
    .optional()
    .describe(`Seconds after which it is given up: ${usualTimeoutS} when left out, at most ${timeoutLimitS}`),
});
type Input = z.infer<typeof inputSchema>;

/**
 * Fetches pages. Local addresses need the user's consent each time. The implementation is loaded with the first call.
 */
export function webfetchTool({ lookup }: { lookup?: Lookup } = {}): Tool {
  return defineTool<Input>({
    name: "webfetch",
    otherNames: [
      "web_fetch",
      "fetch",
      "fetch_url",
      "browse",
      "open_url",
      "read_url",
      "url_fetch",
      "http_get",
    ],
    aliases: {
      url: ["uri", "address", "link", "href"],
    },
    description,
    input: inputSchema,
    kind: "fetch",
    concurrency: "shared",
    async prepare({ url, format = "markdown", timeout: timeoutS = usualTimeoutS }) {
      const { prepareFetch } = await import("./page-fetch.ts");
      return prepareFetch({ address: url, format, timeoutS, lookup });
    },
  });
}
