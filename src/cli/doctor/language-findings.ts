import { UserError } from "../../base/errors.ts";
import type { Project } from "../../conversation/project.ts";
import type { ServerChoice } from "../../lsp/servers/select-servers.ts";
import type { Finding } from "./finding.ts";

/** Lists the language servers that are configured or installed for the project's languages, and which are used. */
export async function languageFindings({ languages }: Project): Promise<Finding[]> {
  try {
    const choices = (await languages?.choices()) ?? [];
    return choices.map((choice) => ({ what: "Language", ...describe(choice) }));
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return [{ what: "Language", found: "unknown", note: error.message }];
  }
}

function describe({ name, state, config, sample }: ServerChoice): Omit<Finding, "what"> {
  const server = config.command === undefined ? name : `${name} (${config.command[0]})`;
  switch (state) {
    case "usable":
      return {
        found: sample === undefined ? `${server}: used; no file for it was found` : `${server}: used`,
      };
    case "open":
      return {
        found: `${server}: installed, not used yet`,
        note: `You are asked in a session here. To use it without a question, set "lsp": true or "lsp": {"${name}": {}}.`,
      };
    case "declined":
      return {
        found: `${server}: not used, as you answered`,
        note: `To use it, set "lsp": {"${name}": {}}.`,
      };
    case "missing":
      return {
        found: `${server}: configured, not found`,
        note: `Install it on the PATH, or set "command" under "lsp": {"${name}": …}.`,
      };
    case "off":
      return { found: `${server}: disabled in the configuration` };
  }
}
