import type { Project } from "../../conversation/project.ts";
import { writeToStderr } from "../terminal/output.ts";

/** Asks each provider, or only the named one, for its models. Returns whether all of them listed models. */
export async function discoverModels({ models }: Project, only?: string): Promise<boolean> {
  const ids = only === undefined ? models.providers().map(({ id }) => id) : [only];
  const results = await Promise.all(ids.map(async (id) => ({ id, listing: await models.discover(id) })));
  for (const { id, listing } of results) writeToStderr(`${id}: ${describeListing(listing)}`);
  return results.every(({ listing }) => listing.outcome === "listed");
}

type ListingResult = Awaited<ReturnType<Project["models"]["discover"]>>;

function describeListing(listing: ListingResult): string {
  if (listing.outcome === "failed") return `its models could not be listed: ${listing.message}`;
  const count = listing.models.length;
  const suffix = listing.isCut ? " (list truncated)" : "";
  return `${count === 1 ? "1 model" : `${count} models`}${suffix}`;
}
