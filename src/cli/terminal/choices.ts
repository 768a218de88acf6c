import { nearest } from "../../base/text/nearest.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import type { Choice } from "./questions.ts";

/** Choices that a wrong answer is answered with. */
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

/** Whether a search finds the choice: by its value, its label, or its hint. */
export function isFound(search: string, { value, label, hint }: Choice): boolean {
  const word = search.trim().toLowerCase();
  return [value, label, hint ?? ""].some((text) => text.toLowerCase().includes(word));
}

/** Says what could be meant by an answer that is no choice, without repeating it. */
export function describeMiss(typed: string, choices: readonly Choice[], isNumbered: boolean): string {
  if (isKnownToken(typed)) return "That looks like a key, which this question does not ask for.";
  const advice = isNumbered
    ? `Answer with a number from 1 to ${choices.length}, or a name of the list.`
    : "Delete it to see all choices.";
  if (typed === "" || /^[-+\d.]+$/.test(typed)) return advice;
  const near = nearbyChoices(typed, choices);
  if (near.length === 0) return `No choice is called that. ${advice}`;
  const more = near.length > nearbyLimit ? `, and ${near.length - nearbyLimit} more` : "";
  const names = near
    .slice(0, nearbyLimit)
    .map((choice) => (isNumbered ? `${choices.indexOf(choice) + 1}. ${named(choice)}` : named(choice)));
  return `No choice is called that. Did you mean ${names.join(", ")}${more}?`;
}

function nearbyChoices(typed: string, choices: readonly Choice[]): readonly Choice[] {
  const found = choices.filter((choice) => isFound(typed, choice));
  if (found.length > 0) return found;
  const names = choices.flatMap(({ value, label }) => [value, label.toLowerCase()]);
  const name = nearest(typed.toLowerCase(), names);
  return choices.filter(({ value, label }) => value === name || label.toLowerCase() === name);
}

function named({ label, hint }: Choice): string {
  return hint === undefined ? label : `${label} (${hint})`;
}
