/** Terminal colors. Texts stay unchanged outside terminals or with `NO_COLOR`. */
export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  red(text: string): string;
  green(text: string): string;
  cyan(text: string): string;
  yellow(text: string): string;
}

const codes: Readonly<Record<keyof Style, number>> = {
  dim: 2,
  bold: 1,
  red: 31,
  green: 32,
  cyan: 36,
  yellow: 33,
};

export const plainStyle: Style = createStyle(() => (text) => text);
const coloredStyle = createStyle((name) => (text) => `\u001b[${codes[name]}m${text}\u001b[0m`);

export function styleFor(
  stream: { isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  const isColored =
    (stream.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb") || !!env["FORCE_COLOR"];
  return isColored ? coloredStyle : plainStyle;
}

function createStyle(paint: (name: keyof Style) => (text: string) => string): Style {
  return {
    dim: paint("dim"),
    bold: paint("bold"),
    red: paint("red"),
    green: paint("green"),
    cyan: paint("cyan"),
    yellow: paint("yellow"),
  };
}
