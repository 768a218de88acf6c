import { z } from "zod";
import { hasOnly, quickForm } from "../base/form.ts";
import { isModelRef, type ModelRef, modelRefSchema } from "../message/message.ts";
import { Approvals, storedApprovals } from "../permission/approvals.ts";
import { Trust, trustedFolderSchema } from "../permission/trust.ts";
import type { JsonStore } from "../storage/json-store.ts";

/** What is remembered of projects between sessions. */
export class ProjectRecords {
  /** The folders whose own configuration the person agreed to. */
  readonly trust: Trust;
  readonly #files: () => Promise<JsonStore>;

  constructor(files: () => Promise<JsonStore>) {
    this.#files = files;
    this.trust = openTrust(files);
  }

  /** What was approved for good in a project. */
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
}

function openTrust(files: () => Promise<JsonStore>): Trust {
  return new Trust({
    load: async (id) => (await files()).read(["trust", id], trustedFolderSchema),
    update: async (id, change) =>
      void (await (await files()).update(["trust", id], trustedFolderSchema, change)),
    ids: async () => (await (await files()).entries(["trust"])).map(({ name }) => name),
  });
}

const projectSchema = z.object({ lastUsedModel: modelRefSchema.optional() });
const storedProject = quickForm(isProject, projectSchema);

function isProject(value: unknown): value is z.infer<typeof projectSchema> {
  if (!hasOnly(value, ["lastUsedModel"])) return false;
  return value.lastUsedModel === undefined || isModelRef(value.lastUsedModel);
}
