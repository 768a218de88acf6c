import { createInterface } from "node:readline";
import { UserError } from "../../base/errors.ts";
import { authorize, type AuthorizeOutcome, type ShowAddress } from "../../mcp/oauth/oauth-flow.ts";
import type { AuthorizationStore } from "../../mcp/oauth/oauth-store.ts";
import type { RemoteServer } from "../../mcp/server-settings.ts";
import { openBrowser } from "../terminal/browser.ts";
import { styleFor } from "../terminal/style.ts";

export interface TerminalFlow {
  server: RemoteServer;
  store: AuthorizationStore;
  /** Whether to open a browser, not only to print the address. */
  opensBrowser: boolean;
}

/** Authorizes a server with the user at this terminal. Prints the address to stderr; Ctrl-C cancels. */
export async function authorizeAtTerminal({
  server,
  store,
  opensBrowser,
}: TerminalFlow): Promise<AuthorizeOutcome> {
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once("SIGINT", interrupt);
  const pasted = new PastedAddress();
  const show: ShowAddress = async (address) => {
    writeToStderr(formatInvitation(server, address));
    if (opensBrowser) openBrowser(address, process.platform, process.env);
    pasted.listen(address);
    return "shown";
  };
  try {
    return await authorize(server, { store, fetch, show }, interrupted.signal);
  } finally {
    pasted.end();
    process.off("SIGINT", interrupt);
  }
}

/** Converts an outcome into an error; undefined on success. */
export function toFailure(outcome: AuthorizeOutcome, server: RemoteServer): UserError | undefined {
  switch (outcome.outcome) {
    case "authorized":
    case "notNeeded":
      return undefined;
    case "declined":
      return new UserError(`"${server.name}" was not authorized: access was denied.`);
    case "cancelled":
      return new UserError(`"${server.name}" was not authorized: you cancelled it.`);
    case "failed":
      return new UserError(`"${server.name}" was not authorized: ${outcome.reason}`);
  }
}

/**
 * Reads the callback address from stdin: a browser on another computer cannot open it, but the user can copy it here.
 */
class PastedAddress {
  #lines: ReturnType<typeof createInterface> | undefined;

  listen(address: string): void {
    const callback = new URL(address).searchParams.get("redirect_uri") ?? "";
    this.#lines = createInterface({ input: process.stdin });
    this.#lines.on("line", (line) => void forwardToCallback(line, callback));
  }

  end(): void {
    this.#lines?.close();
    // An open stdin would keep the process alive.
    process.stdin.destroy();
  }
}

/** Requests the callback address with the query of the pasted line. Ignores the line's host. */
async function forwardToCallback(line: string, callback: string): Promise<void> {
  const query = URL.parse(line.trim())?.search;
  if (!query) return writeToStderr("Not an address. Paste the complete line of the browser's address bar.\n");
  try {
    const { status } = await fetch(new URL(query, callback));
    if (status >= 400) writeToStderr("That address does not belong to this authorization.\n");
  } catch {
    writeToStderr("Too late: start again.\n");
  }
}

function formatInvitation({ name, url }: RemoteServer, address: string): string {
  const style = styleFor(process.stderr, process.env);
  return [
    `To let Fairlead use the MCP server "${name}" (${url}), open this address in your browser:`,
    "",
    `  ${style.bold(address)}`,
    "",
    style.dim(
      "If your browser is on another computer, it ends at a page that does not load: paste the address of that page here.",
    ),
    "",
  ].join("\n");
}

function writeToStderr(text: string): void {
  process.stderr.write(text);
}
