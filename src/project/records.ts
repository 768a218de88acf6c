import { z } from "zod";
import checks from "../../schema/checks.json" with { type: "json" };
import { generatedCheck } from "../base/json-schema.ts";
import { fastValidator } from "../base/validator.ts";
import type { ServerAnswers } from "../lsp/servers/select-servers.ts";
import { type ModelRef, modelRefSchema } from "../message/message.ts";
import { Approvals, storedApprovals } from "../permission/approvals.ts";
import { Trust, trustedFolderSchema } from "../permission/trust.ts";
import type { JsonStore } from "../storage/json/json-store.ts";

/** Stored facts about projects. */
export class ProjectRecords {
  /** The folders whose own configuration the user trusts. */
  readonly trust: Trust;
  readonly #files: () => Promise<JsonStore>;

  constructor(files: () => Promise<JsonStore>) {
    this.#files = files;
    this.trust = openTrust(files);
  }

  /** Permanent approvals in a project. */
  async openApprovals(projectId: string): Promise<Approvals> {
    const files = await this.#files();
    const key = ["permission", projectId];
    return Approvals.open({
      load: () => files.read(key, storedApprovals),
      update: async (change) => void (await files.update(key, storedApprovals, change)),
    });
  }

  async lastUsedModel(projectId: string): Promise<ModelRef | undefined> {
    const files = await this.#files();
    return (await files.read(["project", projectId], storedProject))?.lastUsedModel;
  }

  async rememberModel(projectId: string, lastUsedModel: ModelRef): Promise<void> {
    const files = await this.#files();
    await files.update(["project", projectId], storedProject, (known) => ({ ...known, lastUsedModel }));
  }

  /** The user's answers about installed language servers. */
  async languageServers(projectId: string): Promise<ServerAnswers> {
    const stored = await (await this.#files()).read(["project", projectId], storedProject);
    return stored?.languageServers ?? { agreed: [], declined: [] };
  }

  /** Adds answers; a newer one replaces an older one. */
  async rememberLanguageServers(projectId: string, { agreed, declined }: ServerAnswers): Promise<void> {
    const files = await this.#files();
    await files.update(["project", projectId], storedProject, (known) => {
      const before = known?.languageServers ?? { agreed: [], declined: [] };
      const merge = (one: readonly string[], added: readonly string[], other: readonly string[]) => [
        ...new Set([...one.filter((name) => !other.includes(name)), ...added]),
      ];
      const languageServers = {
        agreed: merge(before.agreed, agreed, declined),
        declined: merge(before.declined, declined, agreed),
      };
      return { ...known, languageServers };
    });
  }

  /** Stores the project's root folder and the current time as its last use. */
  async noteSeen(projectId: string, root: string): Promise<void> {
    const files = await this.#files();
    const seen = Date.now();
    await files.update(["project", projectId], storedProject, (known) => ({
      ...known,
      root,
      time: { created: known?.time?.created ?? seen, seen },
    }));
  }
}

function openTrust(files: () => Promise<JsonStore>): Trust {
  return new Trust({
    load: async (id) => (await files()).read(["trust", id], trustedFolderSchema),
    update: async (id, change) =>
      void (await (await files()).update(["trust", id], trustedFolderSchema, change)),
    ids: async () => (await (await files()).entries(["trust"])).map(({ name }) => name),
  });
}

export const projectSchema = z.object({
  /** The repository's root, or the session's folder outside git. The project id is derived from it. */
  root: z.string().optional(),
  /** Times of the first and the newest session with a turn, in milliseconds since 1970. */
  time: z.object({ created: z.number(), seen: z.number() }).optional(),
  lastUsedModel: modelRefSchema.optional(),
  /** Installed language servers that the user allowed or refused in the project, by name. */
  languageServers: z.object({ agreed: z.array(z.string()), declined: z.array(z.string()) }).optional(),
});
const storedProject = fastValidator(generatedCheck(checks, "project"), projectSchema);
