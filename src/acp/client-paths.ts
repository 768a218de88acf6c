import { realpath } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { SessionUpdate, ToolCallContent, ToolCallLocation } from "@agentclientprotocol/sdk/unstable";
import { isInside } from "../workspace/paths.ts";

/** A folder: the path that the client uses, and its real path. */
interface NamedFolder {
  readonly given: string;
  readonly real: string;
}

/** Fields of a tool call that contain paths. */
interface CallPaths {
  readonly locations?: readonly ToolCallLocation[] | null | undefined;
  readonly content?: readonly ToolCallContent[] | null | undefined;
}

/**
 * Maps real paths to the client's paths. The engine uses real paths; a client that opened a folder through a symbolic
 * link would treat them as different files.
 */
export class ClientPaths {
  readonly #folders: readonly NamedFolder[];

  /** Creates the mapping of a session's folders. Throws if one does not exist. */
  static async create(params: {
    cwd: string;
    additionalDirectories?: readonly string[];
  }): Promise<ClientPaths> {
    const given = [params.cwd, ...(params.additionalDirectories ?? [])].map((toClientPath) =>
      resolve(toClientPath),
    );
    return new ClientPaths(
      await Promise.all(given.map(async (path) => ({ given: path, real: await realpath(path) }))),
    );
  }

  constructor(folders: readonly NamedFolder[] = []) {
    this.#folders = folders.every(({ given, real }) => given === real) ? [] : folders;
  }

  path(path: string): string {
    const folder = this.#findFolder(path);
    return folder === undefined ? path : join(folder.given, relative(folder.real, path));
  }

  /** Maps the path of a file to open. Returns the real path if the link has a new target. */
  async pathToOpen(path: string): Promise<string> {
    const folder = this.#findFolder(path);
    const real = folder && (await realpath(folder.given).catch(() => undefined));
    return real === folder?.real ? this.path(path) : path;
  }

  mapUpdate(update: SessionUpdate): SessionUpdate {
    if (this.#folders.length === 0) return update;
    if (update.sessionUpdate === "plan_update" && update.plan.type === "file") {
      const uri = pathToFileURL(this.path(fileURLToPath(update.plan.uri))).href;
      return { ...update, plan: { ...update.plan, uri } };
    }
    return update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update"
      ? this.mapCall(update)
      : update;
  }

  mapCall<Call extends CallPaths>(call: Call): Call {
    const { locations, content } = call;
    return {
      ...call,
      ...(locations && { locations: locations.map((item) => ({ ...item, path: this.path(item.path) })) }),
      ...(content && { content: content.map((item) => this.#mapContent(item)) }),
    };
  }

  /** Finds the innermost folder that contains the path. */
  #findFolder(path: string): NamedFolder | undefined {
    return this.#folders
      .filter(({ real }) => isInside(path, [real]))
      .sort((one, other) => other.real.length - one.real.length)[0];
  }

  #mapContent(item: ToolCallContent): ToolCallContent {
    if (item.type !== "diff") return item;
    const fromPath = item._meta?.["fromPath"];
    const meta = typeof fromPath === "string" && { _meta: { ...item._meta, fromPath: this.path(fromPath) } };
    return { ...item, path: this.path(item.path), ...meta };
  }
}
