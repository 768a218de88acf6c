import { discoverModels } from "./discover.ts";
import { localApp } from "./local-app.ts";
import { UsageError } from "./usage.ts";

/** Prints the models that can be used now, one a line; with --discover the providers are asked for theirs before. */
export async function models(args: readonly string[] = []): Promise<number> {
  const [flag, provider, ...others] = args;
  if ((flag !== undefined && flag !== "--discover") || others.length > 0)
    throw new UsageError("fairlead models takes nothing, or --discover and the name of a provider");
  const { app, project: before } = await localApp();
  const areListed = flag === undefined || (await discoverModels(before, provider));
  const project = flag === undefined ? before : (await localApp()).project;
  await app.close();
  const known = project.models.list();
  for (const { ref, name, limit } of known) {
    const context = limit.context === undefined ? "" : `  ${Math.round(limit.context / 1000)}k context`;
    process.stdout.write(`${ref.provider}/${ref.model}  ${name}${context}\n`);
  }
  if (known.length > 0) return areListed ? 0 : 1;
  const chosen = project.models.defaultModel();
  process.stderr.write(`${chosen.outcome === "none" ? chosen.error.message : "No model is listed."}\n`);
  return 1;
}
