import type { Project } from "../conversation/project.ts";
import type { Usage } from "../message/event.ts";
import type { SessionInfo } from "../message/message.ts";

/** The parts of a session that the commands use. */
export interface ReloadContext {
  reload(): Promise<Project>;
}
export interface CostContext {
  readonly usage: Usage | undefined;
  readonly info: SessionInfo;
}

/** Maximum number of listed problems. */
const problemsLimit = 40;

/** `/reload` */
export async function reload(session: ReloadContext): Promise<string> {
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
export function describeCost(session: CostContext): string {
  const { usage, info } = session;
  if (usage === undefined) return "Nothing has been used yet.";
  const size = usage.size === undefined ? "" : ` of ${usage.size.toLocaleString("en")}`;
  const spent = info.cost === 0 ? "no cost is known" : `$${info.cost.toFixed(4)} in all`;
  return `Context: ${usage.used.toLocaleString("en")}${size} tokens; ${spent}.`;
}
