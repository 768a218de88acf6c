/**
 * Control characters but tab and line feed; marks that turn the direction of writing; characters without width or
 * picture. The joiner and the variation selector are let through where they make an emoji.
 */
export function hasInvisible(text: string): boolean {
  const rest = text.replace(emojiParts, "");
  return hiddenClasses.test(rest) || Array.from(rest).some(isBlankCharacter);
}

/** The text with each such character written out as `\u{202e}`, so that a person sees what is really there. */
export function showInvisible(text: string): string {
  if (!hasInvisible(text)) return text;
  return Array.from(text, (character) =>
    hiddenClasses.test(character) || isBlankCharacter(character) ? escapeCharacter(character) : character,
  ).join("");
}

const emojiParts =
  /(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?)[\u{FE0F}]|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\u{FE0F}])\u{200D}(?=\p{Extended_Pictographic})/gu;

const hiddenClasses = /[^\P{Cc}\t\n]|\p{Cf}|\p{Cs}|\p{Zl}|\p{Zp}/u;

/** Letters, selectors and fillers that are drawn as nothing though their class does not say so (first and last code point). */
const blankRanges: readonly (readonly [number, number])[] = [
  [0x115f, 0x1160],
  [0x180b, 0x180f],
  [0x2800, 0x2800],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xffa0, 0xffa0],
  [0xe0000, 0xe0fff],
];

function isBlankCharacter(character: string): boolean {
  const code = getCodePoint(character);
  return code > 0x115e && blankRanges.some(([first, last]) => code >= first && code <= last);
}

function escapeCharacter(character: string): string {
  return `\\u{${getCodePoint(character).toString(16)}}`;
}

function getCodePoint(character: string): number {
  return character.codePointAt(0) ?? 0;
}
