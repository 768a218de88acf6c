/**
 * Whether a file is one of those that are asked for before they are read (`.env`, `.env.local`, `prod.env`), by its
 * real path. A project's own texts must not lead there: what they say goes to the model without a question.
 */
export function isSecretFile(path: string): boolean {
  const name = path.toLowerCase().split(/[/\\]/).at(-1) ?? "";
  return /\.env(?:\.|$)/.test(name) && !name.endsWith(".env.example");
}
