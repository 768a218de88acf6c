import { InternalPrompt, type InternalPromptDeps } from "../tool-calls/internal-prompt.ts";
import type { PendingConsent } from "../conversation/project.ts";

/** The name under which the question goes as a call, for clients that tell calls apart. */
export const consentTool = "trust";

/** Lines of the question about what the project wants. */
const wantsLimit = 40;

/** Asks whether the project's own configuration may count in full. The answer is kept with the folder. */
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
    confirm: "only you can say whose configuration you trust",
  });
  const decision = await call.ask(signal);
  const { outcome } = decision;
  if (outcome === "allowed") {
    await consent.accept();
    await call.complete("This project's own configuration counts in full, as long as it stays as it is now.");
    return "accepted";
  }
  if (outcome === "cancelled") {
    await call.fail("cancelled", "The turn was cancelled before this was answered.");
    return "cancelled";
  }
  if (outcome === "unasked") {
    await call.fail(
      "failed",
      `You could not be asked: ${decision.problem} Until you are, the project's own configuration does not count in full.`,
    );
    return "unasked";
  }
  await call.fail("rejected", declinedText(consent));
  return "declined";
}

/** A line break in a name must not make lines of its own in the question. */
function onOneLine(text: string): string {
  return text.replaceAll("\n", "\\n");
}

/** What waits for consent, as lines for the person. */
export function describeConsent({ folder, wants, hasChanged }: PendingConsent): string {
  const more = wants.length - wantsLimit;
  return [
    hasChanged
      ? `The configuration in ${folder} has changed since you trusted it. It wants to set or load:`
      : `The configuration in ${folder} wants to set or load:`,
    ...wants.slice(0, wantsLimit).map((want) => `- ${onOneLine(want)}`),
    ...(more > 0 ? [`- and ${more} more`] : []),
    "Without your consent it can make rules stricter and describe agents, nothing else.",
    "Your consent is kept, for what the configuration is now.",
  ].join("\n");
}

function declinedText({ folder }: PendingConsent): string {
  return `Not used: what this project's configuration would run, load, redirect or allow. To change your mind: fairlead trust add ${folder}`;
}
