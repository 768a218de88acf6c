import { nearest } from "../../base/text/nearest.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import type { Choice } from "./questions.ts";

/** Choices suggested after a wrong answer. */
const nearbyLimit = 8;

/** Finds a choice by its number in the list, its value, or its label in any case. */
export function findChoice(typed: string, choices: readonly Choice[]): Choice | undefined {
  const word = typed.toLowerCase();
  return (
    choices.find(({ value }) => value === typed) ??
    choices.find(({ label }) => label.toLowerCase() === word) ??
    (/^\d{1,6}$/.test(typed) ? choices[Number(typed) - 1] : undefined)
  );
}

/** Whether the search text occurs in the choice's value, label or hint. */
export function matchesSearch(search: string, { value, label, hint }: Choice): boolean {
  const word = search.trim().toLowerCase();
  return [value, label, hint ?? ""].some((text) => text.toLowerCase().includes(word));
}

/** Suggests choices for an unknown answer, without repeating the answer: it may be a key. */
export function describeUnknownChoice(
  typed: string,
  choices: readonly Choice[],
  isNumbered: boolean,
): string {
  if (isKnownToken(typed)) return "That looks like a key, which this question does not ask for.";
  const advice = isNumbered
    ? `Answer with a number from 1 to ${choices.length}, or a name from the list.`
    : "Delete it to see all choices.";
  if (typed === "" || /^[-+\d.]+$/.test(typed)) return advice;
  const near = nearbyChoices(typed, choices);
  if (near.length === 0) return `No such choice. ${advice}`;
  const more = near.length > nearbyLimit ? `, and ${near.length - nearbyLimit} more` : "";
  const names = near
    .slice(0, nearbyLimit)
    .map((choice) =>
      isNumbered ? `${choices.indexOf(choice) + 1}. ${formatChoice(choice)}` : formatChoice(choice),
    );
  return `No such choice. Did you mean ${names.join(", ")}${more}?`;
}

function nearbyChoices(typed: string, choices: readonly Choice[]): readonly Choice[] {
  const found = choices.filter((choice) => matchesSearch(typed, choice));
  if (found.length > 0) return found;
  const names = choices.flatMap(({ value, label }) => [value, label.toLowerCase()]);
  const name = nearest(typed.toLowerCase(), names);
  return choices.filter(({ value, label }) => value === name || label.toLowerCase() === name);
}

function formatChoice({ label, hint }: Choice): string {
  return hint === undefined ? label : `${label} (${hint})`;
}
