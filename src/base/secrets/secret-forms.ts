/**
 * Token prefixes of well-known services, each with the minimum length of the rest: OpenAI and similar, GitHub,
 * GitLab, Slack, AWS, Google, Hugging Face, npm, Groq, xAI, Perplexity, Replicate, Stripe, SendGrid, PyPI,
 * DigitalOcean, and JSON web tokens.
 */
const tokens = [
  String.raw`(?:sk|pk|rk)-[\w-]{16,}`,
  String.raw`(?:sk|pk|rk)_(?:live|test)_\w{16,}`,
  String.raw`gh[opsur]_\w{20,}`,
  String.raw`github_pat_\w{20,}`,
  String.raw`glpat-[\w-]{16,}`,
  String.raw`xox[abeprs]-[\w-]{16,}`,
  "(?:AKIA|ASIA)[A-Z0-9]{16}",
  String.raw`AIza[\w-]{30,}`,
  String.raw`ya29\.[\w-]{20,}`,
  String.raw`hf_\w{20,}`,
  String.raw`npm_\w{30,}`,
  String.raw`gsk_\w{20,}`,
  String.raw`xai-\w{20,}`,
  String.raw`pplx-\w{20,}`,
  String.raw`r8_\w{20,}`,
  String.raw`SG\.[\w-]{16,}\.[\w-]{16,}`,
  String.raw`pypi-[\w-]{30,}`,
  String.raw`dop_v1_\w{30,}`,
  String.raw`eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*`,
].join("|");

const wholeToken = new RegExp(`^(?:${tokens})$`);

/** True when the text consists of one token of a well-known service. */
export const isKnownToken = (text: string): boolean => wholeToken.test(text);

/** Patterns that reveal a secret by its surroundings, each with its replacement. */
const forms: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, "[key]"],
  // User name and password in a URL.
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@"']{1,400}@/gi, "$1[key]@"],
  // A header value.
  [/\b(Bearer|Basic|Token)\s+[\w.~+/=-]{8,}/gi, "$1 [key]"],
  // `?api_key=…`, `"apiKey": "…"`, `x-api-key: …`, `PASSWORD=…`
  [
    /((?:api[-_]?key|access[-_]?(?:key|token)|auth[-_]?token|refresh[-_]?token|id[-_]?token|token|secret|password|passwd|signature|[?&]key|[?&]sig)["']?\s*[=:]\s*["']?)(?!\[key\])[^\s"'&,;}]{6,}/gi,
    "$1[key]",
  ],
  [new RegExp(`(?<![\\w-])(?:${tokens})`, "g"), "[key]"],
];

/** Removes everything that looks like a secret, known or not. May remove ordinary words: use it for logs only. */
export function removeSecretForms(text: string): string {
  return forms.reduce((clean, [form, rest]) => clean.replaceAll(form, rest), text);
}
