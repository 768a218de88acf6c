import { isRecord } from "../base/text/record.ts";
import { isMessageId, isPartId, isSessionId } from "./ids.ts";
import { approvalModes, finishReasons, type Message, type SessionInfo, titleSources } from "./message.ts";
import { isModelRef } from "./model-ref.ts";
import { decisionOutcomes, deciders, fileOperations, toolKinds } from "./part.ts";

type Check = (value: unknown) => boolean;
type Fields = Readonly<Record<string, Check>>;

/**
 * True for a stored message of the common kind, without copying it. Ten times as fast as the schema, and never
 * accepts what the schema rejects. Returns false for rare content (attachments, errors, compactions).
 */
export function isPlainMessage(value: unknown): value is Message & { seq: number } {
  return plainMessage(value);
}

/** True for a stored session of the common kind; false for one with an undo. */
export function isPlainSession(value: unknown): value is SessionInfo {
  return plainSession(value);
}

const isText: Check = (value) => typeof value === "string";
const isWord: Check = (value) => isText(value) && value !== "";
const isFlag: Check = (value) => typeof value === "boolean";
const isNumber: Check = (value) => Number.isFinite(value);
const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const isAnything: Check = () => true;

function is(expected: unknown): Check {
  return (value) => value === expected;
}

function oneOf(values: readonly unknown[]): Check {
  return (value) => values.includes(value);
}

function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

/** Checks for an object with all needed fields, any of the others, and no more. */
function fields(needed: Fields, others: Fields = {}): Check {
  const checks = new Map(Object.entries({ ...needed, ...others }));
  const names = Object.keys(needed);
  return (value) => {
    if (!isRecord(value)) return false;
    for (const name in value) if (checks.get(name)?.(value[name]) !== true) return false;
    return names.every((name) => Object.hasOwn(value, name));
  };
}

/** Checks a union by its discriminator field. */
function byField(name: string, kinds: Fields): Check {
  const checks = new Map(Object.entries(kinds));
  return (value) => isRecord(value) && checks.get(String(value[name]))?.(value) === true;
}

/** Metadata of a call. Rejects `__proto__`, because a schema drops that key. */
const isFacts: Check = (value) => isRecord(value) && !Object.hasOwn(value, "__proto__");

const providerMetadata = fields({ provider: isText, model: isText, api: isText, data: isFacts });
const span = fields({ start: isNumber }, { end: isNumber });
const tokens = fields({
  input: isNumber,
  output: isNumber,
  reasoning: isNumber,
  cache: fields({ read: isNumber, write: isNumber }),
});

const info = byField("role", {
  user: fields(
    {
      id: isMessageId,
      sessionId: isSessionId,
      role: is("user"),
      time: fields({ created: isNumber }),
      agent: isText,
    },
    { model: isModelRef, effort: isText, steering: isFlag },
  ),
  assistant: fields(
    {
      id: isMessageId,
      sessionId: isSessionId,
      role: is("assistant"),
      parentId: isMessageId,
      time: fields({ created: isNumber }, { completed: isNumber }),
      agent: isText,
      model: isModelRef,
      cost: isNumber,
      tokens,
    },
    {
      finish: oneOf(finishReasons),
      summary: isFlag,
      path: fields({ cwd: isText, root: isText }),
    },
  ),
});

const isContent: Check = (value) => value === null || isText(value);
const change = fields(
  { path: isText, operation: oneOf(fileOperations), additions: isCount, deletions: isCount },
  { before: isContent, after: isContent },
);

const decision = fields(
  { outcome: oneOf(decisionOutcomes), by: oneOf(deciders), permission: isText, subject: isText },
  { rule: fields({ permission: isText, pattern: isText, action: isText }), waitedMs: isNumber },
);

const location = fields({ path: isText }, { line: (value) => isCount(value) && value !== 0 });

const tool = fields(
  {
    id: isPartId,
    type: is("tool"),
    callId: isText,
    tool: isText,
    state: fields(
      { status: is("completed"), output: isText, time: span },
      {
        input: isAnything,
        changes: listOf(change),
        metadata: isFacts,
        compactedAt: isNumber,
        shownOutput: isText,
      },
    ),
  },
  {
    providerCallId: isText,
    signature: isText,
    providerMetadata,
    title: isText,
    kind: oneOf(toolKinds),
    locations: listOf(location),
    decision,
  },
);

const part = byField("type", {
  text: fields(
    { id: isPartId, type: is("text"), text: isText },
    { synthetic: isFlag, ignored: isFlag, providerMetadata, time: span },
  ),
  reasoning: fields({ id: isPartId, type: is("reasoning"), text: isText }, { providerMetadata, time: span }),
  tool,
  "step-start": fields({ id: isPartId, type: is("step-start") }),
  "step-finish": fields(
    {
      id: isPartId,
      type: is("step-finish"),
      reason: isText,
      tokens,
      cost: isNumber,
    },
    { providerMetadata },
  ),
  patch: fields({ id: isPartId, type: is("patch"), changes: listOf(change) }),
});

const plainMessage = fields({ info, parts: listOf(part), seq: isCount });

const plainSession = fields(
  {
    id: isSessionId,
    projectId: isText,
    cwd: isText,
    agent: isText,
    cost: isNumber,
    time: fields({ created: isNumber, updated: isNumber }, { archived: isNumber, compacting: isNumber }),
    version: isText,
  },
  {
    parentId: isSessionId,
    parentCallId: isText,
    additionalDirectories: listOf(isText),
    title: isText,
    titleSource: oneOf(titleSources),
    model: isModelRef,
    effort: isText,
    titleCall: fields({ model: isModelRef, tokens, cost: isNumber, time: isNumber }),
    approval: oneOf(approvalModes),
    approvals: listOf(fields({ permission: isWord, pattern: isWord })),
    autoCompact: isFlag,
    summary: fields({ additions: isNumber, deletions: isNumber, files: isNumber }),
  },
);
