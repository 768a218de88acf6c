import type { Message, SessionInfo } from "../../message/message.ts";
import { renderMessages, type ViewSource } from "./conversation.ts";
import { escapeHtml } from "./markdown.ts";
import { pageStyle } from "./style.ts";
import { renderTimeline } from "./timeline.ts";

/** Renders a session as one HTML page that loads nothing, with messages oldest first. */
export async function renderSessionPage(
  info: SessionInfo,
  messages: readonly Message[],
  source: Omit<ViewSource, "cwd">,
): Promise<string> {
  const { title, cwd, cost, time, summary } = info;
  const facts = [
    cwd,
    `${new Date(time.created).toISOString().slice(0, 16)} to ${new Date(time.updated).toISOString().slice(0, 16)} UTC`,
    ...(cost > 0 ? [`$${cost.toFixed(4)}`] : []),
    ...(summary === undefined
      ? []
      : [`${summary.files} files, +${summary.additions} −${summary.deletions} lines`]),
  ];
  return renderPage(
    title ?? "Session",
    `<p class="facts">${facts.map(escapeHtml).join(" · ")}</p>
${renderTimeline(messages)}
<main>
${await renderMessages(messages, { ...source, cwd })}
</main>`,
  );
}

/** Renders a page with a heading. The content is HTML. */
export function renderPage(title: string, content: string): string {
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escapeHtml(title)}</title>
<style>${pageStyle}</style>
</head>
<body>
<h1>${escapeHtml(title)}</h1>
${content}
</body>
</html>
`;
}
