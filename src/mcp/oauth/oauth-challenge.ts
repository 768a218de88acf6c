import { UserError } from "../../base/errors.ts";

/** What a server said when it refused a request without the right to make it. */
export interface Challenge {
  readonly resourceMetadataUrl?: URL | undefined;
  /** Scopes it wants, with blanks between them. */
  readonly scope?: string | undefined;
}

/** The server wants an authorization that only the person can give. */
export class AuthorizationNeeded extends UserError {
  readonly challenge: Challenge;

  constructor(name: string, challenge: Challenge) {
    super(`The MCP server "${name}" wants to be authorized: run "fairlead mcp auth ${name}".`);
    this.challenge = challenge;
  }
}
