/** Instructions for one kind of work. The model sees name and description until it loads them. */
export type Skill = StoredSkill | GivenSkill;

interface SkillHead {
  readonly name: string;
  /** When to use it; one paragraph. */
  readonly description: string;
}

export interface StoredSkill extends SkillHead {
  /** Real path of its `SKILL.md`. */
  readonly path: string;
  /** Real path of the folder that contains `SKILL.md` and its resources. */
  readonly folder: string;
}

/** A skill that the client gave for a session. It has no files. */
export interface GivenSkill extends SkillHead {
  readonly text: string;
}
