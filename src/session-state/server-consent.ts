import { InternalPrompt, type InternalPromptDeps } from "../tool-calls/internal-prompt.ts";
import type { OfferedServers } from "../lsp/project-servers.ts";

/** Tool name of the question's call, for clients that distinguish calls. */
export const serverConsentTool = "language_servers";

/** Asks the user whether installed language servers may run in the project. A given answer is stored. */
export async function askAboutServers(
  deps: InternalPromptDeps,
  offered: OfferedServers,
  signal: AbortSignal,
): Promise<"accepted" | "declined" | "unasked" | "cancelled"> {
  const names = offered.servers.map(({ name }) => name).join(", ");
  const call = new InternalPrompt(deps, {
    tool: serverConsentTool,
    title: `Use language servers in this project: ${names}?`,
    input: { folder: offered.folder, servers: offered.servers.map(({ name }) => name) },
    text: describeOffer(offered),
    subject: offered.folder,
    confirm: "only you can decide which programs run in a project",
  });
  const decision = await call.ask(signal);
  switch (decision.outcome) {
    case "allowed":
      await offered.answer(true);
      call.complete(`Used in this project from now on: ${names}.`);
      return "accepted";
    case "cancelled":
      call.fail("cancelled", "The turn was cancelled before this was answered.");
      return "cancelled";
    case "unasked":
      call.complete(`Language servers are not used, because you could not be asked: ${names}.`);
      return "unasked";
    case "denied":
    case "rejected":
      // The end of a session is not an answer.
      if (decision.outcome === "rejected" && decision.cause === undefined) await offered.answer(false);
      call.fail(
        "rejected",
        `Not used in this project. To change your mind, configure them under "lsp": ${names}.`,
      );
      return "declined";
  }
}

function describeOffer({ folder, servers }: OfferedServers): string {
  return [
    `Language servers let the model find definitions and references in ${folder}, rename symbols, and see the errors that its edits cause. Installed here:`,
    ...servers.map(({ name, program }) => `- ${name}: ${program}`),
    "They run with your rights, and some run code of the project, such as build scripts and plugins: agree only for projects that you trust.",
    'Your answer is stored for this project. "lsp" in your configuration decides for all projects: true, or false.',
  ].join("\n");
}
