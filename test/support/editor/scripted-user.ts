import type {
  PermissionOptionKind,
  RequestPermissionOutcome,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk";

/** How the user answers: a kind of option, an outcome, or never. */
type PermissionAnswer = PermissionOptionKind | "cancelled" | "never" | RequestPermissionOutcome;

export type PermissionPolicy =
  | PermissionAnswer
  | ((request: RequestPermissionRequest) => PermissionAnswer | Promise<PermissionAnswer>);

/** A scripted user who answers permission requests by a policy. */
export class ScriptedUser {
  /** Without a policy, a permission request fails the test. */
  policy: PermissionPolicy | undefined;
  readonly requests: RequestPermissionRequest[] = [];
  readonly problems: string[] = [];
  /** Open requests, each with a function that answers it when its session is cancelled. */
  readonly #pending = new Set<{ sessionId: string; cancel: () => void }>();

  constructor(policy: PermissionPolicy | undefined) {
    this.policy = policy;
  }

  /** Answers the session's open requests with "cancelled". A user with the policy "never" does not answer. */
  cancel(sessionId: string): void {
    for (const requested of this.#pending) if (requested.sessionId === sessionId) requested.cancel();
  }

  async ask(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionOutcome> {
    this.requests.push(request);
    if (this.policy === "never") return toOutcome(this.policy, request);
    const cancelled = Promise.withResolvers<RequestPermissionOutcome>();
    const requested = {
      sessionId: request.sessionId,
      cancel: () => cancelled.resolve({ outcome: "cancelled" }),
    };
    signal.addEventListener("abort", requested.cancel, { once: true });
    this.#pending.add(requested);
    try {
      return await Promise.race([this.#decide(request), cancelled.promise]);
    } finally {
      this.#pending.delete(requested);
    }
  }

  async #decide(request: RequestPermissionRequest): Promise<RequestPermissionOutcome> {
    try {
      if (this.policy !== undefined) return await toOutcome(this.policy, request);
      this.problems.push(`Permission was asked for, but the test has no answer: ${request.toolCall.title}`);
    } catch (error) {
      this.problems.push(`The permission policy failed: ${String(error)}`);
    }
    return { outcome: "cancelled" };
  }
}

/** Creates the outcome on the wire. Never resolves for "never"; rejects if the option was not offered. */
async function toOutcome(
  policy: PermissionPolicy,
  request: RequestPermissionRequest,
): Promise<RequestPermissionOutcome> {
  const answer = typeof policy === "function" ? await policy(request) : policy;
  if (answer === "never") return new Promise(() => {});
  if (typeof answer === "object") return answer;
  if (answer === "cancelled") return { outcome: "cancelled" };
  const option = request.options.find(({ kind }) => kind === answer);
  if (!option) throw new Error(`The agent offered no option of the kind ${answer}.`);
  return { outcome: "selected", optionId: option.optionId };
}
