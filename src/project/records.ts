import { z } from "zod";
import { hasOnly, fastValidator } from "../base/validator.ts";
import { isModelRef, type ModelRef, modelRefSchema } from "../message/message.ts";
import { Approvals, storedApprovals } from "../permission/approvals.ts";
import { Trust, trustedFolderSchema } from "../permission/trust.ts";
import type { JsonStore } from "../storage/json/json-store.ts";

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

  /** Stores what the project is and that a session worked in it now. `root` is the folder that its id stands for. */
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

const projectSchema = z.object({
  /** The folder that the project's id stands for: the repository's root, outside git the session's folder. */
  root: z.string().optional(),
  /** Milliseconds since 1970: the first and the newest session with a turn. */
  time: z.object({ created: z.number(), seen: z.number() }).optional(),
  lastUsedModel: modelRefSchema.optional(),
});
const storedProject = fastValidator(isProject, projectSchema);

function isProject(value: unknown): value is z.infer<typeof projectSchema> {
  if (!hasOnly(value, ["root", "time", "lastUsedModel"])) return false;
  const { root, time, lastUsedModel } = value;
  return (
    (root === undefined || typeof root === "string") &&
    (time === undefined || isSpan(time)) &&
    (lastUsedModel === undefined || isModelRef(lastUsedModel))
  );
}

function isSpan(value: unknown): boolean {
  return hasOnly(value, ["created", "seen"]) && Number.isFinite(value.created) && Number.isFinite(value.seen);
}
