import announcedStep from "../../prompts/reminders/announced-step.md";
import buildSwitch from "../../prompts/reminders/build-switch.md";
import changesDropped from "../../prompts/reminders/changes-dropped.md";
import changesRestored from "../../prompts/reminders/changes-restored.md";
import date from "../../prompts/reminders/date.md";
import emptyAnswer from "../../prompts/reminders/empty-answer.md";
import leakedCall from "../../prompts/reminders/leaked-call.md";
import othersChanged from "../../prompts/reminders/others-changed.md";
import planAgain from "../../prompts/reminders/plan-again.md";
import plan from "../../prompts/reminders/plan.md";
import uncertainCall from "../../prompts/reminders/uncertain-call.md";
import uncheckedChanges from "../../prompts/reminders/unchecked-changes.md";
import unprovenClaim from "../../prompts/reminders/unproven-claim.md";
import steer from "../../prompts/reminders/steer.md";
import resourcesChanged from "../../prompts/reminders/resources-changed.md";
import stepLimit from "../../prompts/reminders/step-limit.md";
import stopHook from "../../prompts/reminders/stop-hook.md";
import { PLAN_FILES } from "../agent/plan-files.ts";
import { PLAN_AGENT } from "../agent/plan-mode.ts";
import type { Message } from "../message/message.ts";
import type { Part, TextPart } from "../message/part.ts";

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

/** The content that the model has seen before a reminder. */
interface ReminderContext {
  /** The visible messages. */
  readonly messages: readonly Message[];
  /** Whether the agent has a prompt that replaces the usual one. */
  readonly hasOwnPrompt?: boolean;
}

/**
 * Returns the reminder that plan mode is on or has just ended; undefined when neither applies. It says how to plan unless
 * an earlier message or the agent's own prompt does.
 */
export function planReminder(
  agent: string,
  previousAgent: string | undefined,
  { messages, hasOwnPrompt = false }: ReminderContext,
): string | undefined {
  if (agent === PLAN_AGENT) {
    const planFiles = PLAN_FILES.join(" or ");
    const whole = fill(plan, { planFiles }).trim();
    const isKnown = hasOwnPrompt || findSyntheticText(messages, (text) => text === whole) !== undefined;
    return isKnown ? fill(planAgain, { planFiles }).trim() : whole;
  }
  if (previousAgent === PLAN_AGENT) return fill(buildSwitch, { from: previousAgent, to: agent }).trim();
  return undefined;
}

/** Returns the reminder for an agent that takes over a running turn. */
export function handOverReminder(from: string, to: string, context: ReminderContext): string {
  return planReminder(to, from, context) ?? fill(buildSwitch, { from, to }).trim();
}

/** Formats a date without time, as the model sees it. */
export const formatDate = (time: number): string => new Date(time).toDateString();

/**
 * Returns the reminder of today's date if the model knows another one: that of the newest reminder, else of the session's
 * start, which its system prompt contains.
 */
export function dateReminder(
  now: number,
  startedAt: number,
  messages: readonly Message[],
): string | undefined {
  const today = createDateReminder(now);
  const [opening = ""] = date.split("{{");
  const newest = findSyntheticText(messages, (text) => text.startsWith(opening));
  return today === (newest ?? createDateReminder(startedAt)) ? undefined : today;
}

const createDateReminder = (time: number): string => fill(date, { date: formatDate(time) }).trim();

/** Returns the newest synthetic text of the conversation that is wanted. */
function findSyntheticText(
  messages: readonly Message[],
  isWanted: (text: string) => boolean,
): string | undefined {
  const isFound = (part: Part): part is TextPart =>
    part.type === "text" && part.synthetic === true && isWanted(part.text);
  for (const { parts } of messages.toReversed()) {
    const found = parts.findLast(isFound);
    if (found !== undefined) return found.text;
  }
  return undefined;
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

/** Follows an answer with a call that was not run because it may be an example. */
export function uncertainCallReminder(tool: string): string {
  return fill(uncertainCall, { tool }).trim();
}

/** Follows an answer that announces a step and ends. */
export function announcedStepReminder(): string {
  return announcedStep.trim();
}

/** Follows an answer that ends a turn with changes after which nothing was run. */
export function uncheckedChangesReminder(files: string): string {
  return fill(uncheckedChanges, { files }).trim();
}

/** Follows an answer that ends a turn and says that checks succeed which no run shows. */
export function unprovenClaimReminder(claims: string): string {
  return fill(unprovenClaim, { claims }).trim();
}

/** Names the files that other sessions changed. */
export function othersChangedReminder(files: string): string {
  return fill(othersChanged, { files }).trim();
}

/** Maximum number of resources in a reminder. */
const listedResourcesLimit = 20;

/** Says which resources of MCP servers have changed since the model read them. */
export function changedResourcesReminder(changed: readonly { server: string; uri: string }[]): string {
  const lines = changed.slice(0, listedResourcesLimit).map(({ server, uri }) => `- ${uri} of ${server}`);
  const rest = changed.length - lines.length;
  const resources = [...lines, ...(rest > 0 ? [`- and ${rest} more`] : [])].join("\n");
  return fill(resourcesChanged, { resources }).trim();
}

/** Follows an answer that a hook does not accept as the end of the turn. */
export function stopHookReminder(objection: string): string {
  return fill(stopHook, { objection }).trim();
}

/** Says that the user dropped changes, or restored them. */
export function droppedChangesReminder(changes: string, isRedo: boolean): string {
  return fill(isRedo ? changesRestored : changesDropped, { changes }).trim();
}
