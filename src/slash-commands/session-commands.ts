import type { CommandContext } from "./commands.ts";

/** Maximum number of listed problems. */
const problemsLimit = 40;
/** `/reload` */
export async function reload(session: CommandContext): Promise<string> {
  const { agents, commands, skills, problems } = await session.reload();
  const counts = `${agents.size} agents, ${commands.length} commands, ${skills.length} skills`;
  const shown = problems.slice(0, problemsLimit).map((problem) => `- ${problem}`);
  const rest = problems.length - shown.length;
  return [
    `Reloaded: ${counts}. ${problems.length === 0 ? "No problems." : "Problems:"}`,
    ...(shown.length === 0 ? [] : ["", ...shown]),
    ...(rest > 0 ? [`- and ${rest} more`] : []),
  ].join("\n");
}

/** `/cost` */
export function describeCost(session: CommandContext): string {
  const { usage, info } = session;
  if (usage === undefined) return "Nothing has been used yet.";
  const size = usage.size === undefined ? "" : ` of ${usage.size.toLocaleString("en")}`;
  const spent = info.cost === 0 ? "no cost is known" : `$${info.cost.toFixed(4)} in all`;
  return `Context: ${usage.used.toLocaleString("en")}${size} tokens; ${spent}.`;
}
