/** Instructions for one kind of work, of which the model sees name and description until it loads them. */
export interface Skill {
  readonly name: string;
  /** When to use it; one paragraph. */
  readonly description: string;
  /** Real path of its `SKILL.md`. */
  readonly path: string;
  /** Real path of the folder with its `SKILL.md` and whatever that refers to. */
  readonly folder: string;
}
