import { z } from "zod";
import { UserError } from "../base/errors.ts";
import { skillFrontMatterSchema } from "../config/schema.ts";
import type { GivenSkill } from "./skill.ts";

/** Maximum number of a client's skills, and of characters of each and of all together. */
const skillsLimit = 100;
const contentLimit = 100_000;
const totalLimit = 1_000_000;

const givenSkillsSchema = z
  .array(
    z.object({
      ...skillFrontMatterSchema.pick({ name: true, description: true }).shape,
      content: z.string().trim().min(1).max(contentLimit),
    }),
  )
  .max(skillsLimit);

/** Reads the skills of a client. Throws a {@link UserError} that names the fault. */
export function parseGivenSkills(value: unknown): GivenSkill[] {
  const parsed = givenSkillsSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UserError(
      `skills${issue?.path.map((key) => `.${String(key)}`).join("") ?? ""}: ${issue?.message}`,
    );
  }
  const names = parsed.data.map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw new UserError(`skills: two have the name "${repeated}"`);
  const length = parsed.data.reduce((sum, { content }) => sum + content.length, 0);
  if (length > totalLimit)
    throw new UserError(`skills: they have ${length} characters together; the limit is ${totalLimit}`);
  return parsed.data.map(({ name, description, content }) => ({
    name,
    description: `${description} (from the editor)`,
    text: content,
  }));
}
