import { Marked } from "marked";

export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

const markdown = new Marked({
  gfm: true,
  renderer: {
    // HTML in an answer is shown as text: it could load or run something.
    html: ({ text }) => escapeHtml(text),
    // An image would be loaded from elsewhere.
    image: ({ href, text }) => `${escapeHtml(text)} (${escapeHtml(href)})`,
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      if (!/^https?:\/\//i.test(href)) return text;
      return `<a href="${escapeHtml(href)}" rel="noreferrer noopener">${text}</a>`;
    },
  },
});

/** Renders Markdown as HTML that loads nothing and runs nothing. */
export function renderMarkdown(text: string): string {
  return markdown.parse(text, { async: false });
}
