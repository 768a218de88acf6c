import { InternalPrompt, type InternalPromptDeps } from "../tool-calls/internal-prompt.ts";
import type { PendingConsent } from "../conversation/project.ts";

/** Tool name of the question's call, for clients that distinguish calls. */
export const consentTool = "trust";

/** Maximum number of listed settings. */
const wantsLimit = 40;

/** Asks the user to trust the project's configuration. The answer is stored for the folder. */
export async function askConsent(
  deps: InternalPromptDeps,
  consent: PendingConsent,
  signal: AbortSignal,
): Promise<"accepted" | "declined" | "unasked" | "cancelled"> {
  const call = new InternalPrompt(deps, {
    tool: consentTool,
    title: "Trust this project's configuration?",
    input: { folder: consent.folder },
    text: describeConsent(consent),
    subject: consent.folder,
    confirm: "only you can decide which configuration to trust",
  });
  const decision = await call.ask(signal);
  const { outcome } = decision;
  if (outcome === "allowed") {
    await consent.accept();
    call.complete("This project's configuration is trusted until it changes.");
    return "accepted";
  }
  if (outcome === "cancelled") {
    call.fail("cancelled", "The turn was cancelled before this was answered.");
    return "cancelled";
  }
  if (outcome === "unasked") {
    call.fail(
      "failed",
      `You could not be asked: ${decision.problem} Until then the project's configuration is not trusted.`,
    );
    return "unasked";
  }
  call.fail("rejected", declinedText(consent));
  return "declined";
}

/** Escapes line breaks, so that a name cannot add lines to the question. */
function onOneLine(text: string): string {
  return text.replaceAll("\n", "\\n");
}

/** Describes the settings that need consent, as text for the user. */
export function describeConsent({ folder, wants, hasChanged }: PendingConsent): string {
  const more = wants.length - wantsLimit;
  return [
    hasChanged
      ? `The configuration in ${folder} has changed since you trusted it. It wants to set or load:`
      : `The configuration in ${folder} wants to set or load:`,
    ...wants.slice(0, wantsLimit).map((want) => `- ${onOneLine(want)}`),
    ...(more > 0 ? [`- and ${more} more`] : []),
    "Without your consent it can make rules stricter and describe agents, nothing else.",
    "Your consent is stored and applies until the configuration changes.",
  ].join("\n");
}

function declinedText({ folder }: PendingConsent): string {
  return `Not used: what this project's configuration would run, load, redirect or allow. To change your mind: fairlead trust add ${folder}`;
}
