import type { ConfineProgram } from "../sandbox/project-sandbox.ts";
import { McpServer, type ServerDeps } from "./server.ts";
import { getIdentity, type ServerSettings } from "./server-settings.ts";

export type ServersDeps = Omit<ServerDeps, "roots" | "capabilities" | "confine"> & {
  /** Elicitation capabilities of the editor. */
  capabilities: () => ServerDeps["capabilities"];
};

/** The MCP servers of this process. Sessions with equal settings share a server, which closes with the last of them. */
export class Servers {
  readonly #deps: ServersDeps;
  readonly #shared = new Map<string, { server: McpServer; users: Set<object> }>();
  readonly #ending = new Set<Promise<void>>();

  constructor(deps: ServersDeps) {
    this.#deps = deps;
  }

  /** Returns the server with these settings. `user` holds it until it calls `leave`. */
  join(
    settings: ServerSettings,
    { roots, confine }: { roots: readonly string[]; confine: ConfineProgram },
    user: object,
  ): McpServer {
    const key = getIdentity(settings, roots);
    const shared = this.#shared.get(key) ?? this.#create(key, settings, { roots, confine });
    shared.users.add(user);
    return shared.server;
  }

  leave(server: McpServer, user: object): void {
    for (const [key, shared] of this.#shared) {
      if (shared.server !== server || !shared.users.delete(user) || shared.users.size > 0) continue;
      this.#shared.delete(key);
      this.#end(server);
    }
  }

  /** Closes all servers, including those that are already closing. */
  async endAll(): Promise<void> {
    for (const { server } of this.#shared.values()) this.#end(server);
    this.#shared.clear();
    await Promise.all(this.#ending);
  }

  #create(key: string, settings: ServerSettings, project: Pick<ServerDeps, "roots" | "confine">) {
    const { version, processes, capabilities, log, secrets, signIn, files, onVisited } = this.#deps;
    const shared = {
      server: new McpServer(settings, {
        version,
        processes,
        ...project,
        capabilities: capabilities(),
        log,
        secrets,
        signIn,
        files,
        onVisited,
      }),
      users: new Set<object>(),
    };
    this.#shared.set(key, shared);
    return shared;
  }

  #end(server: McpServer): void {
    const ended = server.end().finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }
}
