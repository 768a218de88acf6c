/** Phrases with which a model announces its next step. */
const intentions =
  /\b(?:let me|let['\u2019]s|i['\u2019]ll|i will|i['\u2019]m going to|i am going to|(?:now|next|first|then),? i(?:['\u2019]ll)?|i need to|i(?:['\u2019]m| am) now)\b/i;
/** What follows these is not a step, or one that needs no tool. */
const noSteps =
  /\blet me know\b|\b(?:show|explain|describe|illustrate|demonstrate|quote|wait|summari[sz]e)\b|\?\s*$/i;

/** Characters of a text's end in which the last sentence is looked for. */
const sentenceLimit = 300;

/** Whether the last sentence announces a step that needs a tool: "Let me read the file first:". */
export function announcesStep(text: string): boolean {
  const sentence = lastSentence(text);
  return intentions.test(sentence) && !noSteps.test(sentence);
}

/** Whether the text breaks off before what it announces: it ends with a colon or with dots. */
export function isLeftOpen(text: string): boolean {
  return /(?::|\.\.\.|\u2026)$/.test(text.trimEnd());
}

/** From the last full stop, question mark, exclamation mark or line break that something follows. */
function lastSentence(text: string): string {
  const tail = text.trim().slice(-sentenceLimit);
  return tail.split(/(?<=[.!?])\s+|\n+/).at(-1) ?? "";
}
