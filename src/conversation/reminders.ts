import announcedStep from "../../prompts/reminders/announced-step.md";
import buildSwitch from "../../prompts/reminders/build-switch.md";
import emptyAnswer from "../../prompts/reminders/empty-answer.md";
import leakedCall from "../../prompts/reminders/leaked-call.md";
import plan from "../../prompts/reminders/plan.md";
import steer from "../../prompts/reminders/steer.md";
import stepLimit from "../../prompts/reminders/step-limit.md";
import { PLAN_FILES } from "../agent/plan-files.ts";

const PLACEHOLDER = /\{\{(\w+)\}\}/g;

/**
 * Replaces `{{name}}` by values. Throws for a placeholder without value or a value without placeholder. Placeholders
 * in values are not replaced.
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

/** Returns the names of a template's placeholders. */
export function placeholders(template: string): Set<string> {
  return new Set([...template.matchAll(PLACEHOLDER)].map(([, name = ""]) => name));
}

/** Returns the reminder that plan mode is on or has just ended; undefined when neither applies. */
export function planReminder(agent: string, previousAgent: string | undefined): string | undefined {
  if (agent === "plan") return fill(plan, { planFiles: PLAN_FILES.join(" or ") }).trim();
  if (previousAgent === "plan") return fill(buildSwitch, { from: previousAgent, to: agent }).trim();
  return undefined;
}

/** Returns the reminder for an agent that takes over a running turn. */
export function handOverReminder(from: string, to: string): string {
  return planReminder(to, from) ?? fill(buildSwitch, { from, to }).trim();
}

/** Tells the model to summarize, because the turn ends with this answer. */
export function stepLimitReminder(): string {
  return stepLimit.trim();
}

/** Follows a message that arrived during a turn. */
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
