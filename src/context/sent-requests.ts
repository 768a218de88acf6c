import { isSame } from "../base/memoize.ts";
import { sha256 } from "../base/text/hash.ts";
import { carriedText } from "../message/carried.ts";
import { estimateHead, estimateMessage, type RequestHead } from "../message/estimate-request.ts";
import type { AssistantInfo, Message, OmittedKind, SentRequest } from "../message/message.ts";
import { clearedOutput, type Part, visibleOutput } from "../message/part.ts";
import type { Model, Models } from "../model/model.ts";
import { acceptsMedium, mediumKinds } from "../model/request/media.ts";
import { isFinishedSummary } from "../conversation/visible-messages.ts";

/** Characters of a stored digest. */
const digestLength = 16;

export interface DescribedRequest extends RequestHead {
  readonly messages: readonly Message[];
  readonly agent: string;
  readonly model: Model;
  /** Whether the provider has probably dropped the conversation from its cache. */
  readonly hasExpired: boolean;
  /** Whether the provider rejected earlier thoughts; undefined before the answer, when the last request decides. */
  readonly omitsThoughts?: boolean | undefined;
}

/** The first messages of a request, up to one of them. */
interface Prefix {
  readonly message: Message;
  /** The parts that the message had. */
  readonly parts: readonly Part[];
  /** The digest of all messages. */
  readonly all: string;
  readonly tokens: number;
}

type SentMessage = Message & { readonly info: AssistantInfo & { readonly sent: SentRequest } };

/**
 * Compares each request of a session with the earlier ones, whose digests are stored with their answers. Only messages
 * that are new or changed are read again.
 */
export class SentRequests {
  readonly #costOf: Models["costOf"];
  #prefixes: Prefix[] = [];
  #parts = new WeakMap<Part, string>();
  readonly #tools = new WeakMap<object, string>();
  /** The kinds of content that the digests omit. */
  #omits: readonly OmittedKind[] = [];

  constructor(costOf: Models["costOf"]) {
    this.#costOf = costOf;
  }

  /** Describes a request that is about to be sent. */
  describe(request: DescribedRequest): SentRequest {
    const { system, tools, messages } = request;
    const head = { system: digest(system), tools: this.#digestTools(tools) };
    const omits = listOmitted(request);
    const prefixes = this.#update(messages, request.model, omits);
    const headTokens = estimateHead({ system, tools });
    const tokensUntil = (count: number) => headTokens + (prefixes[count - 1]?.tokens ?? 0);
    const sent = {
      ...head,
      messages: prefixes.at(-1)?.all ?? "",
      count: prefixes.length,
      tokens: tokensUntil(prefixes.length),
      ...(omits.length > 0 && { omits }),
    };
    const count = findKept(request, head, prefixes);
    const kept = count === undefined ? 0 : tokensUntil(count);
    const last = messages.findLast(wasSent);
    if (last === undefined) return { ...sent, kept };
    const reusable = Math.min(last.info.sent.tokens, sent.tokens);
    const isBroken = kept < reusable;
    if (!isBroken && !request.hasExpired) return { ...sent, kept };
    const lost = isBroken && !request.hasExpired ? reusable - kept : reusable;
    const cause = request.hasExpired ? "expired" : findCause(last, request, { ...head, omits });
    const cost = this.#costOfLost(request.model, { tokens: sent.tokens, reusable, lost });
    return { ...sent, kept, lost, cause, ...(cost > 0 && { cost }) };
  }

  /** Returns how much more the request costs because of the lost tokens, in US dollars. */
  #costOfLost(model: Model, { tokens, reusable, lost }: Record<"tokens" | "reusable" | "lost", number>) {
    const priced = (read: number) => {
      const rest = tokens - read;
      const isWritten = model.cache === "marks";
      const cache = { read, write: isWritten ? rest : 0 };
      return this.#costOf(model, { input: isWritten ? 0 : rest, output: 0, reasoning: 0, cache });
    };
    return priced(reusable - lost) - priced(reusable);
  }

  #update(messages: readonly Message[], model: Model, omits: OmittedKind[]): readonly Prefix[] {
    if (!isSame(this.#omits, omits)) {
      this.#parts = new WeakMap();
      this.#prefixes = [];
    }
    this.#omits = omits;
    const changed = this.#prefixes.findIndex(({ message, parts }, index) => {
      const current = messages[index];
      return current !== message || !isSame(parts, current.parts);
    });
    if (changed !== -1) this.#prefixes.splice(changed);
    for (const message of messages.slice(this.#prefixes.length)) {
      const before = this.#prefixes.at(-1);
      const parts = [...message.parts];
      const own = digest([message.info.role, ...parts.map((part) => this.#digestPart(part, model))]);
      const tokens = (before?.tokens ?? 0) + estimateMessage(message);
      this.#prefixes.push({ message, parts, all: digest([before?.all, own]), tokens });
    }
    return this.#prefixes;
  }

  #digestPart(part: Part, model: Model): string {
    const sendsThoughts = !this.#omits.includes("thoughts");
    const made = this.#parts.get(part) ?? digest(listContent(part, model, sendsThoughts));
    this.#parts.set(part, made);
    return made;
  }

  #digestTools(tools: readonly object[]): string {
    const made = this.#tools.get(tools) ?? digest(tools);
    this.#tools.set(tools, made);
    return made;
  }
}

const digest = (value: unknown): string => sha256(JSON.stringify(value)).slice(0, digestLength);

function wasSent(message: Message): message is SentMessage {
  return message.info.role === "assistant" && message.info.sent !== undefined;
}

/** Lists what the model does not accept. Whether it accepts thoughts is known from its last answer. */
function listOmitted({ model, messages, omitsThoughts }: DescribedRequest): OmittedKind[] {
  const last = messages.findLast(
    (message): message is SentMessage => wasSent(message) && isSameModel(message.info.model, model.ref),
  );
  const omits = omitsThoughts ?? last?.info.sent.omits?.includes("thoughts") === true;
  const media = mediumKinds.filter((medium) => !model.abilities[medium]);
  return omits ? [...media, "thoughts"] : media;
}

const isSameModel = (one: Model["ref"], other: Model["ref"]): boolean =>
  one.provider === other.provider && one.model === other.model;

/** Returns how many messages an earlier request began with; undefined if not even system text and tools are the same. */
function findKept(
  { messages, model: { ref } }: DescribedRequest,
  head: Pick<SentRequest, "system" | "tools">,
  prefixes: readonly Prefix[],
): number | undefined {
  const isAlike = (message: Message): message is SentMessage =>
    wasSent(message) &&
    isSameModel(message.info.model, ref) &&
    message.info.sent.system === head.system &&
    message.info.sent.tools === head.tools;
  const kept = messages.findLast(
    (message): message is SentMessage =>
      isAlike(message) && prefixes[message.info.sent.count - 1]?.all === message.info.sent.messages,
  );
  return kept?.info.sent.count ?? (messages.some(isAlike) ? 0 : undefined);
}

function findCause(
  last: SentMessage,
  { model: { ref }, agent, messages }: DescribedRequest,
  head: Pick<SentRequest, "system" | "tools"> & { readonly omits: readonly OmittedKind[] },
): NonNullable<SentRequest["cause"]> {
  const { info } = last;
  if (!isSameModel(info.model, ref)) return "model";
  const hasOtherSystem = info.sent.system !== head.system;
  if (hasOtherSystem && info.agent !== agent) return "agent";
  // Other causes also make the program rebuild the system prompt, so they are checked first.
  if (messages.some((message) => message.info.id >= info.id && isFinishedSummary(message)))
    return "compaction";
  if (messages.some(({ parts }) => parts.some((part) => getClearedAt(part) >= info.time.created)))
    return "cleared";
  if (info.sent.tools !== head.tools) return "tools";
  if (hasOtherSystem) return "system";
  const [omitted] = head.omits.filter((kind) => info.sent.omits?.includes(kind) !== true);
  if (omitted === undefined) return "messages";
  return omitted === "thoughts" ? "thoughts" : "media";
}

function getClearedAt(part: Part): number {
  return part.type === "tool" && part.state.status === "completed" ? (part.state.compactedAt ?? 0) : 0;
}

/** Returns what the model sees of a part. */
function listContent(part: Part, model: Model, sendsThoughts: boolean): unknown[] {
  switch (part.type) {
    case "text":
      return part.ignored === true ? [] : [part.type, part.text];
    case "reasoning":
      return sendsThoughts ? [part.type, part.text, part.providerMetadata?.data] : [];
    case "file":
      return [part.type, part.mime, acceptsMedium(part.mime, model) ? part.url : ""];
    case "tool":
      return [part.type, part.tool, part.sent?.input ?? part.state.input, ...listOutput(part.state, model)];
    case "compaction":
      return [part.type, part.carried === undefined ? "" : carriedText(part.carried)];
    case "subtask":
      return [part.type, part.agent, part.prompt];
    default:
      return [];
  }
}

function listOutput(state: (Part & { type: "tool" })["state"], model: Model): unknown[] {
  if (state.status === "error") return [state.error];
  if (state.status !== "completed") return [];
  if (state.compactedAt !== undefined) return [clearedOutput];
  const media = (state.attachments ?? []).map(({ mime, url }) => (acceptsMedium(mime, model) ? url : ""));
  return [visibleOutput(state), ...media];
}
