import type { Project } from "../../conversation/project.ts";
import { writeToStderr } from "../terminal/output.ts";

/** Asks each provider, or the one that is named, which models it has. Whether all of them said so. */
export async function discoverModels({ models }: Project, only?: string): Promise<boolean> {
  const ids = only === undefined ? models.providers().map(({ id }) => id) : [only];
  const asked = await Promise.all(ids.map(async (id) => ({ id, listed: await models.discover(id) })));
  for (const { id, listed } of asked) writeToStderr(`${id}: ${describeListing(listed)}`);
  return asked.every(({ listed }) => listed.outcome === "listed");
}

type ListingResult = Awaited<ReturnType<Project["models"]["discover"]>>;

function describeListing(listed: ListingResult): string {
  if (listed.outcome === "failed") return `its models could not be listed: ${listed.message}`;
  const count = listed.models.length;
  const cut = listed.isCut ? "; it has more than are kept" : "";
  return `${count === 1 ? "1 model" : `${count} models`}${cut}`;
}
