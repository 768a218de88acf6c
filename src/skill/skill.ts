/** Instructions for one kind of work. The model sees name and description until it loads them. */
export interface Skill {
  readonly name: string;
  /** When to use it; one paragraph. */
  readonly description: string;
  /** Real path of its `SKILL.md`. */
  readonly path: string;
  /** Real path of the folder that contains `SKILL.md` and its resources. */
  readonly folder: string;
}
