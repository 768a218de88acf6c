/** Terminal colours. Texts stay unchanged outside terminals or with `NO_COLOR`. */
export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  red(text: string): string;
  green(text: string): string;
  cyan(text: string): string;
  yellow(text: string): string;
}

export function styleFor(
  stream: { isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  const isColoured =
    (stream.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb") || !!env["FORCE_COLOR"];
  const paint = (code: number) => (text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text);
  return {
    dim: paint(2),
    bold: paint(1),
    red: paint(31),
    green: paint(32),
    cyan: paint(36),
    yellow: paint(33),
  };
}
