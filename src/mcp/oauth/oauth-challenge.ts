import { UserError } from "../../base/errors.ts";

/** The challenge of a server that rejected an unauthorized request. */
export interface Challenge {
  readonly resourceMetadataUrl?: URL | undefined;
  /** Required scopes, separated by spaces. */
  readonly scope?: string | undefined;
}

/** The server requires authorization by the user. */
export class AuthorizationNeeded extends UserError {
  readonly challenge: Challenge;

  constructor(name: string, challenge: Challenge) {
    super(`The MCP server "${name}" requires authorization: run "fairlead mcp auth ${name}".`);
    this.challenge = challenge;
  }
}
