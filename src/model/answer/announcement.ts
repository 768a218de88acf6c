/** Phrases with which a model announces its next step. */
const intentions =
  /\b(?:let me|let['\u2019]s|i['\u2019]ll|i will|i['\u2019]m going to|i am going to|(?:now|next|first|then),? i(?:['\u2019]ll)?|i need to|i(?:['\u2019]m| am) now)\b/i;
/** Phrases after which no step follows, or a step that needs no tool. */
const noSteps =
  /\blet me know\b|\b(?:show|explain|describe|illustrate|demonstrate|quote|wait|summari[sz]e)\b|\?\s*$/i;

/** Characters at the end of a text that are searched for the last sentence. */
const sentenceLimit = 300;

/** Returns whether the last sentence announces a step that needs a tool: "Let me read the file first:". */
export function announcesStep(text: string): boolean {
  const sentence = lastSentence(text);
  return intentions.test(sentence) && !noSteps.test(sentence);
}

/** Returns whether the text ends with a colon or an ellipsis, as if more should follow. */
export function isLeftOpen(text: string): boolean {
  return /(?::|\.\.\.|\u2026)$/.test(text.trimEnd());
}

/** Returns the text after the last sentence end or line break. */
function lastSentence(text: string): string {
  const tail = text.trim().slice(-sentenceLimit);
  return tail.split(/(?<=[.!?])\s+|\n+/).at(-1) ?? "";
}
