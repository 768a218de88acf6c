import { Sandbox } from "../../../src/sandbox/sandbox.ts";

/**
 * As {@link findSandboxProblem}, for tests that compare what bubblewrap does: its error texts, its own /tmp, processes
 * and ports. Only Linux has it. `system-sandbox.test.ts` runs with every sandbox.
 */
export async function findBubblewrapProblem(): Promise<string | undefined> {
  if (process.platform === "linux") return findSandboxProblem();
  console.warn("NOT RUN: the tests of bubblewrap, which is for Linux.");
  return "no bubblewrap";
}

/**
 * Returns why this machine has no sandbox; undefined if it has one. Throws if the tests of the sandbox are
 * required.
 */
export async function findSandboxProblem(): Promise<string | undefined> {
  const problem = await new Sandbox({ env: () => process.env }).findProblem();
  if (problem === undefined) return undefined;
  if (process.env["FAIRLEAD_REQUIRE_SANDBOX"] === "1")
    throw new Error(`FAIRLEAD_REQUIRE_SANDBOX is set. ${problem}`);
  console.warn(`NOT RUN: the tests of the sandbox. ${problem}`);
  return problem;
}
