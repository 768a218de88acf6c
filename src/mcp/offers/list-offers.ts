import { z } from "zod";
import { CallClock } from "../connection/call-clock.ts";
import type { McpConnection } from "../connection/connection.ts";
import { ConnectError, describeFailure } from "../connection/failures.ts";
import type { ServerCapabilities } from "./offers.ts";
import {
  type GivenList,
  offerLimit,
  parsePrompts,
  parseResources,
  parseTemplates,
  parseTools,
} from "./parse-offers.ts";

/** Maximum number of pages per list. */
const pagesLimit = 100;

type Lister = Pick<McpConnection, "capabilities" | "request" | "usesHeaders" | "hasTasks">;

/**
 * Lists everything that the server offers. Failed lists are empty, with a note. Throws {@link ConnectError} if the server
 * requires authorization.
 */
export async function listOffers(connection: Lister, timeoutMs: number): Promise<ServerCapabilities> {
  const { capabilities } = connection;
  const none: GivenList = { items: [], isCut: false };
  const problems: string[] = [];
  const list = async (isThere: boolean, method: string, key: string) => {
    const listed = isThere ? await listAll(connection, method, key, timeoutMs) : none;
    if ("items" in listed) return listed;
    problems.push(`its ${key} could not be listed: ${listed.reason}`);
    return none;
  };
  const hasResources = capabilities.resources !== undefined;
  const [tools, prompts, resources, templates] = await Promise.all([
    list(capabilities.tools !== undefined, "tools/list", "tools"),
    list(capabilities.prompts !== undefined, "prompts/list", "prompts"),
    list(hasResources, "resources/list", "resources"),
    list(hasResources, "resources/templates/list", "resourceTemplates"),
  ]);
  const parsed = {
    tools: parseTools(tools, connection),
    prompts: parsePrompts(prompts),
    resources: parseResources(resources),
    templates: parseTemplates(templates),
  };
  return {
    tools: parsed.tools.tools,
    prompts: parsed.prompts.prompts,
    resources: parsed.resources.resources,
    templates: parsed.templates.templates,
    hasResources,
    notes: [...problems, ...Object.values(parsed).flatMap(({ notes }) => notes)],
  };
}

/** Requests all pages of a list. */
async function listAll(
  connection: Lister,
  method: string,
  key: string,
  timeoutMs: number,
): Promise<GivenList | { reason: string }> {
  const pageSchema = z.looseObject({
    [key]: z.array(z.unknown()),
    nextCursor: z.string().optional().catch(undefined),
  });
  const items: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pagesLimit && items.length <= offerLimit; page++) {
    const clock = new CallClock(timeoutMs);
    const listed = await connection.request(method, cursor === undefined ? {} : { cursor }, pageSchema, {
      clock,
    });
    clock.end();
    if (listed.outcome === "failed" && listed.failure.kind === "unauthorized")
      throw new ConnectError({ kind: "unauthorized" });
    if (listed.outcome === "failed") return { reason: describeFailure(listed.failure, timeoutMs) };
    const found = listed.value[key];
    if (Array.isArray(found)) items.push(...found.slice(0, offerLimit + 1));
    const { nextCursor } = listed.value;
    const next = typeof nextCursor === "string" ? nextCursor : undefined;
    if (next === undefined || next === cursor) break;
    cursor = next;
  }
  return { items: items.slice(0, offerLimit), isCut: items.length > offerLimit };
}
