/** Colors of both pictures, as in a dark editor theme. */
export const colors = {
  background: "#1e2227",
  raised: "#282c34",
  border: "#3b414d",
  text: "#c8ccd4",
  muted: "#838994",
  red: "#d07277",
  green: "#a1c181",
  yellow: "#dec184",
  cyan: "#6eb4bf",
  addedLine: "#a1c18122",
  removedLine: "#d0727722",
} as const;

export const sansFont = "system-ui, -apple-system, 'Segoe UI', sans-serif";
export const monoFont = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";

export function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

export interface Text {
  readonly x: number;
  readonly y: number;
  readonly size: number;
  readonly color?: string;
  readonly isMono?: boolean;
  readonly isBold?: boolean;
}

export function drawText(text: string, { x, y, size, color = colors.text, isMono, isBold }: Text): string {
  const family = isMono === true ? monoFont : sansFont;
  const weight = isBold === true ? ' font-weight="600"' : "";
  return `<text x="${x}" y="${y}" font-size="${size}" font-family="${family}" fill="${color}"${weight} xml:space="preserve">${escapeXml(text)}</text>`;
}

/** Breaks a text at blanks into lines of at most so many characters. */
export function wrapText(text: string, width: number): string[] {
  return text.split("\n").flatMap((paragraph) => {
    const lines = [""];
    for (const word of paragraph.split(" ")) {
      const line = lines.at(-1) ?? "";
      if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
      else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
    }
    return lines;
  });
}

export function svgDocument(title: string, width: number, height: number, content: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${escapeXml(title)}</title>
<rect width="${width}" height="${height}" rx="8" fill="${colors.background}"/>
${content}
</svg>
`;
}
