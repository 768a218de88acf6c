/** The agent of plan mode. */
export const PLAN_AGENT = "plan";
/** The agent that carries plans out. */
export const BUILD_AGENT = "build";

/** Returns the agent that continues after plan mode; undefined if there is no other. */
export function findAgentAfterPlan(names: readonly string[]): string | undefined {
  return names.includes(BUILD_AGENT) ? BUILD_AGENT : names.find((name) => name !== PLAN_AGENT);
}
