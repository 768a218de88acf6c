import { fileURLToPath } from "node:url";
import type { Plugin } from "rolldown";

const runtime = fileURLToPath(new URL("plain-headers-runtime.js", import.meta.url));

/** Gives the model library headers of its own: Node's load all of its fetch, which nothing here needs. */
export const plainHeaders: Plugin = {
  name: "plain-headers",
  transform(code, id) {
    if (!id.includes("/@ai-sdk/provider-utils/")) return null;
    return { code: `import { Headers } from ${JSON.stringify(runtime)};${code}`, map: null };
  },
};
