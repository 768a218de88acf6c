import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { colors, escapeXml, monoFont, svgDocument } from "./svg.ts";

// Records `fairlead demo` and draws it as an animated SVG: each line appears when it was printed.

const columns = 100;
const rows = 30;
const [size, charWidth, lineHeight, margin] = [13, 7.8, 18, 16];
/** The scripted model answers faster than people read. */
const slowdown = 8;
/** Seconds after the end before the picture starts again. */
const pause = 8;

interface Span {
  readonly text: string;
  readonly color: string;
  readonly isBold: boolean;
}
interface Line {
  readonly spans: readonly Span[];
  /** Seconds from the start. */
  readonly at: number;
}

const root = join(import.meta.dirname, "../..");
const { lines, seconds } = await record();
writeFileSync(join(root, "docs/pictures/demo.svg"), draw(lines, seconds + pause));

async function record(): Promise<{ lines: Line[]; seconds: number }> {
  const env = { ...process.env, FORCE_COLOR: "1" };
  const child = spawn(process.execPath, [join(root, "bin/fairlead.js"), "demo"], { env });
  // The recording starts with the first text, not with the start of the program.
  let start: number | undefined;
  const elapsed = () => ((performance.now() - (start ??= performance.now())) * slowdown) / 1_000;
  const recorded: Line[] = [];
  let rest = "";
  for await (const chunk of child.stdout.setEncoding("utf8")) {
    const at = elapsed();
    const parts = (rest + String(chunk)).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) recorded.push(...breakLine(spansOf(part)).map((spans) => ({ spans, at })));
  }
  if (child.exitCode !== 0 && child.exitCode !== null) throw new Error("The demo failed.");
  return { lines: recorded, seconds: elapsed() };
}

/** Reads the few escapes that the program writes: bold, dim, four colors, and the end of each. */
function spansOf(text: string): Span[] {
  const named: Record<string, string> = {
    "2": colors.muted,
    "31": colors.red,
    "32": colors.green,
    "33": colors.yellow,
    "36": colors.cyan,
  };
  let color: string = colors.text;
  let isBold = false;
  const spans: Span[] = [];
  // The random part of the temporary folder's name.
  const stable = text
    .replaceAll(/fairlead-demo-\w{6}/g, "fairlead-demo")
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:8080");
  for (const [at, part] of stable.split("\u001b[").entries()) {
    const [, code, rest] = at === 0 ? [part, undefined, part] : (/^(\d+)m([^]*)$/.exec(part) ?? []);
    if (code === "1") isBold = true;
    else if (code === "0") [color, isBold] = [colors.text, false];
    else if (code !== undefined) color = named[code] ?? color;
    if (rest !== undefined && rest !== "") spans.push({ text: rest, color, isBold });
  }
  return spans;
}

function breakLine(spans: readonly Span[]): Span[][] {
  const broken: Span[][] = [[]];
  let used = 0;
  for (const span of spans) {
    let { text } = span;
    while (text !== "") {
      if (used === columns) {
        broken.push([]);
        used = 0;
      }
      const part = text.slice(0, columns - used);
      broken.at(-1)?.push({ ...span, text: part });
      used += part.length;
      text = text.slice(part.length);
    }
  }
  return broken;
}

function draw(all: readonly Line[], duration: number): string {
  const width = Math.round(columns * charWidth + 2 * margin);
  const height = rows * lineHeight + 2 * margin;
  const share = (at: number) => ((100 * at) / duration).toFixed(2);
  const texts = all.map(({ spans, at }, row) => {
    const parts = spans.map(
      ({ text, color, isBold }) =>
        `<tspan fill="${color}"${isBold ? ' font-weight="600"' : ""}>${escapeXml(text)}</tspan>`,
    );
    const name = `l${row}`;
    const place = `x="${margin}" y="${margin + (row + 1) * lineHeight - 5}"`;
    if (at <= 0) return `<text ${place} xml:space="preserve">${parts.join("")}</text>`;
    return `<style>@keyframes ${name}{0%,${share(at)}%{opacity:0}${share(at + 0.01)}%,100%{opacity:1}}</style><text ${place} style="animation:${name} ${duration.toFixed(1)}s infinite" xml:space="preserve">${parts.join("")}</text>`;
  });
  // The window follows the newest line.
  const steps = all.flatMap(({ at }, row) =>
    row < rows ? [] : [`${share(at)}%{transform:translateY(-${(row + 1 - rows) * lineHeight}px)}`],
  );
  const last = Math.max(0, all.length - rows) * lineHeight;
  const scroll = `<style>@keyframes scroll{0%{transform:translateY(0)}${steps.join("")}100%{transform:translateY(-${last}px)}}.s{animation:scroll ${duration.toFixed(1)}s step-end infinite;font:${size}px ${monoFont}}</style>`;
  const clip = `<clipPath id="window"><rect x="0" y="${margin / 2}" width="${width}" height="${height - margin}"/></clipPath>`;
  const content = `${scroll}${clip}<g clip-path="url(#window)"><g class="s">\n${texts.join("\n")}\n</g></g>`;
  return svgDocument("A recording of the command fairlead demo", width, height, content);
}
