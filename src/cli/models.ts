import { localApp } from "./local-app.ts";

/** Prints the models that can be used now, one a line. */
export async function models(): Promise<number> {
  const { project } = await localApp();
  const known = project.models.list();
  for (const { ref, name, limit } of known) {
    const context = limit.context === undefined ? "" : `  ${Math.round(limit.context / 1000)}k context`;
    process.stdout.write(`${ref.provider}/${ref.model}  ${name}${context}\n`);
  }
  if (known.length > 0) return 0;
  const chosen = project.models.defaultModel();
  process.stderr.write(`${chosen.outcome === "none" ? chosen.error.message : "No model is listed."}\n`);
  return 1;
}
