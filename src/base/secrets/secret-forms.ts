/**
 * Beginnings by which well-known services make their tokens recognizable, each with how much follows at least: OpenAI
 * and its like, GitHub, GitLab, Slack, AWS, Google, Hugging Face, npm, Groq, xAI, Perplexity, Replicate, Stripe,
 * SendGrid, PyPI, DigitalOcean, and JSON web tokens.
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

/** Whether a text is nothing but a token of a well-known service. */
export const isKnownToken = (text: string): boolean => wholeToken.test(text);

/** What gives a secret away by what stands around it, and what of it stays. */
const forms: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, "[key]"],
  // A name and a password in an address.
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@"']{1,400}@/gi, "$1[key]@"],
  // A header's value.
  [/\b(Bearer|Basic|Token)\s+[\w.~+/=-]{8,}/gi, "$1 [key]"],
  // `?api_key=…`, `"apiKey": "…"`, `x-api-key: …`, `PASSWORD=…`
  [
    /((?:api[-_]?key|access[-_]?(?:key|token)|auth[-_]?token|refresh[-_]?token|id[-_]?token|token|secret|password|passwd|signature|[?&]key|[?&]sig)["']?\s*[=:]\s*["']?)(?!\[key\])[^\s"'&,;}]{6,}/gi,
    "$1[key]",
  ],
  [new RegExp(`(?<![\\w-])(?:${tokens})`, "g"), "[key]"],
];

/** The text without whatever looks like a secret, known or not. Words are lost now and then: for logs only. */
export function withoutSecretForms(text: string): string {
  return forms.reduce((clean, [form, rest]) => clean.replaceAll(form, rest), text);
}
