/** What else than as written an odd character may be read as: a blank, the end of a line, nothing. */
const meanings = ["", " ", "\n"] as const;

/** Characters that some program or person takes for a blank, the end of a line or nothing, and bash for a letter. */
const oddCharacters =
  /(?:[^\P{Cc}\t\n]|[^\P{Zs}\u0020]|\p{Cf}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point}|\u2800)+/gu;

/** Characters of all readings together, but for the first few. */
const readingLimit = 200_000;
/** With so many odd places each is read in every way, with more only in ways that are alike. */
const exhaustivePlaces = 5;
const pairedPlaces = 12;

/**
 * Other texts that a command line with odd characters may be read as: with these as blanks, as ends of lines, or left
 * out, as many combinations as are worth it. None where all characters are plain.
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

/** The meaning of each odd place; undefined stands for the characters as they are. */
type Choice = (index: number) => string | undefined;

function resolveChoice(choice: Choice, index: number, written: readonly string[]): string {
  return index >= written.length ? "" : (choice(index) ?? written[index] ?? "");
}

/** The most likely first. */
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

/** Two places end lines, and what is between and around is read alike. */
function* generatePairedChoices(count: number): Generator<Choice> {
  for (let from = 0; from < count; from++)
    for (let to = from; to < count; to++)
      for (const rest of [undefined, "", " "])
        yield (index) => (index === from || index === to ? "\n" : rest);
}

/** One place ends a line, and the rest is read alike. */
function* generateSingleSplits(count: number): Generator<Choice> {
  for (const rest of [" ", "", undefined])
    for (let from = 0; from < count; from++) yield (index) => (index === from ? "\n" : rest);
}
