/** Other readings of an odd character: nothing, a blank, a line end. */
const meanings = ["", " ", "\n"] as const;

/** Characters that look like a blank, a line end or nothing, and that bash treats as letters. */
const oddCharacters =
  /(?:[^\P{Cc}\t\n]|[^\P{Zs}\u0020]|\p{Cf}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point}|\u2800)+/gu;

/** Maximum length of all readings together; the first few are always produced. */
const readingLimit = 200_000;
/** Up to this many odd characters, every combination is produced. */
const exhaustivePlaces = 5;
/** Up to this many, every pair of line ends. Above, every single line end. */
const pairedPlaces = 12;

/**
 * Returns the texts that a command line with odd characters may be read as: with these as blanks, as line ends, or
 * left out. The number of combinations is limited. Empty if there are no odd characters.
 */
export function findAlternativeReadings(command: string): string[] {
  const pieces = command.split(oddCharacters);
  const count = pieces.length - 1;
  if (count === 0) return [];
  const written = command.match(oddCharacters) ?? [];
  const readings = new Set<string>();
  let left = readingLimit;
  for (const choice of generateChoices(count)) {
    left -= command.length;
    if (left < 0 && readings.size >= meanings.length) break;
    readings.add(pieces.map((piece, index) => piece + resolveChoice(choice, index, written)).join(""));
  }
  readings.delete(command);
  return [...readings];
}

/** The meaning of each odd character; undefined keeps it. */
type Choice = (index: number) => string | undefined;

function resolveChoice(choice: Choice, index: number, written: readonly string[]): string {
  return index >= written.length ? "" : (choice(index) ?? written[index] ?? "");
}

/** Generates choices, the most likely first. */
function* generateChoices(count: number): Generator<Choice> {
  for (const meaning of meanings) yield () => meaning;
  if (count <= exhaustivePlaces) yield* generateAllChoices(count);
  else if (count <= pairedPlaces) yield* generatePairedChoices(count);
  else yield* generateSingleSplits(count);
}

const everyMeaning = [undefined, ...meanings];

function* generateAllChoices(count: number): Generator<Choice> {
  for (let number = 0; number < everyMeaning.length ** count; number++)
    yield (index) => everyMeaning[Math.floor(number / everyMeaning.length ** index) % everyMeaning.length];
}

/** Two characters end lines; all others have the same meaning. */
function* generatePairedChoices(count: number): Generator<Choice> {
  for (let from = 0; from < count; from++)
    for (let to = from; to < count; to++)
      for (const rest of [undefined, "", " "])
        yield (index) => (index === from || index === to ? "\n" : rest);
}

/** One character ends a line; all others have the same meaning. */
function* generateSingleSplits(count: number): Generator<Choice> {
  for (const rest of [" ", "", undefined])
    for (let from = 0; from < count; from++) yield (index) => (index === from ? "\n" : rest);
}
