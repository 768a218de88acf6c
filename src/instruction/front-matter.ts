/** Keys of a file's front matter as texts. Lists are joined with commas. */
export interface FrontMatter {
  readonly fields: ReadonlyMap<string, string>;
  /** The text after the front matter. */
  readonly body: string;
}

/**
 * Reads the front matter of rule files. It looks like YAML, but editors write patterns such as `globs: *.ts` into it,
 * which are not.
 */
export function readFrontMatter(text: string): FrontMatter {
  const found = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text);
  if (found === null) return { fields: new Map(), body: text };
  const fields = new Map<string, string>();
  let key = "";
  for (const line of (found[1] ?? "").split(/\r?\n/)) {
    const item = /^\s*-\s+(.+)$/.exec(line)?.[1];
    const field = /^(\w+):(.*)$/.exec(line);
    if (field !== null) {
      key = field[1] ?? "";
      fields.set(key, unquote(field[2] ?? ""));
    } else if (item !== undefined && key !== "") {
      fields.set(key, [fields.get(key) ?? "", unquote(item)].filter(Boolean).join(","));
    }
  }
  return { fields, body: text.slice(found[0].length) };
}

/** Removes the quotes or brackets around a value. */
function unquote(value: string): string {
  const text = value.trim();
  const list = /^\[(.*)\]$/.exec(text)?.[1];
  if (list !== undefined) return splitList(list).map(unquote).join(",");
  return /^(["'])(.*)\1$/.exec(text)?.[2] ?? text;
}

/** Splits at commas that are not in braces. */
export function splitList(text: string): string[] {
  const items = text.match(/(?:\{[^}]*\}|[^,])+/g) ?? [];
  return items.map((item) => item.trim()).filter((item) => item !== "");
}
