/**
 * Whether reading the file needs a question by default (`.env`, `.env.local`, `prod.env`); takes the real path.
 * A project's own texts must not include such a file, as they go to the model without a question.
 */
export function isSecretFile(path: string): boolean {
  const name = path.toLowerCase().split(/[/\\]/).at(-1) ?? "";
  return /\.env(?:\.|$)/.test(name) && !name.endsWith(".env.example");
}
