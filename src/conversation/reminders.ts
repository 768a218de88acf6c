import announcedStep from "../../prompts/reminders/announced-step.md";
import buildSwitch from "../../prompts/reminders/build-switch.md";
import emptyAnswer from "../../prompts/reminders/empty-answer.md";
import leakedCall from "../../prompts/reminders/leaked-call.md";
import plan from "../../prompts/reminders/plan.md";
import steer from "../../prompts/reminders/steer.md";
import stepLimit from "../../prompts/reminders/step-limit.md";
import { PLAN_FILES } from "../agent/built-in.ts";

const PLACEHOLDER = /\{\{(\w+)\}\}/g;

/**
 * Puts the values in the place of `{{name}}`. Throws where a placeholder has no value or a value no placeholder.
 * What a value contains is not looked at again.
 */
export function fill(template: string, values: Readonly<Record<string, string>>): string {
  const names = placeholders(template);
  const unused = Object.keys(values).filter((name) => !names.has(name));
  if (unused.length > 0) throw new Error(`the prompt has no placeholder for ${unused.join(", ")}`);
  return template.replace(PLACEHOLDER, (_, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value === undefined) throw new Error(`the prompt's placeholder ${name} was given no value`);
    return value;
  });
}

/** The names of a template's placeholders. */
export function placeholders(template: string): Set<string> {
  return new Set([...template.matchAll(PLACEHOLDER)].map(([, name = ""]) => name));
}

/** What the model must know of plan mode with this message: that it is on, or that it has just ended. */
export function planReminder(agent: string, previousAgent: string | undefined): string | undefined {
  if (agent === "plan") return fill(plan, { planFiles: PLAN_FILES.join(" or ") }).trim();
  if (previousAgent === "plan") return fill(buildSwitch, { from: previousAgent, to: agent }).trim();
  return undefined;
}

/** What the agent must know to which a turn was handed over in its middle. */
export function handOverReminder(from: string, to: string): string {
  return planReminder(to, from) ?? fill(buildSwitch, { from, to }).trim();
}

/** Says that the turn ends with this answer and that it is to sum up. */
export function stepLimitReminder(): string {
  return stepLimit.trim();
}

/** Goes behind a message that arrived in the middle of a turn. */
export function steerReminder(): string {
  return steer.trim();
}

/** Follows an empty answer. */
export function emptyAnswerReminder(): string {
  return emptyAnswer.trim();
}

/** Follows an answer in which a call was written as text. */
export function leakedCallReminder(tool: string): string {
  return fill(leakedCall, { tool }).trim();
}

/** Follows an answer that announces a step and ends. */
export function announcedStepReminder(): string {
  return announcedStep.trim();
}
