import {
  type AnyMessage,
  type AuthStatusResponse,
  type CreateElicitationRequest,
  RequestError,
  type RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";
import { deferred } from "../../base/async.ts";
import type { Log } from "../../base/log.ts";
import { isRecord } from "../../base/text/record.ts";
import type { SessionId } from "../../message/ids.ts";
import type { EditorBuffers } from "../../workspace/files/editor-files.ts";
import { requestCancelled } from "../errors.ts";

/** Sends requests and notifications to the client. Responses are matched by id; results are not validated. */
export class Requester {
  readonly #send: (message: AnyMessage) => unknown;
  readonly #log: Log;
  readonly #pending = new Map<unknown, (response: object) => void>();
  #nextId = 0;

  constructor(send: (message: AnyMessage) => unknown, log: Log) {
    this.#send = (message) => send(message);
    this.#log = log;
  }

  /** Rejects with the client's error. Stops waiting when cancelled, because a client may never answer. */
  async request(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    const id = this.#nextId++;
    if (signal.aborted) throw requestCancelled(id);
    const answer = deferred<unknown>();
    const cancel = () => {
      this.#pending.set(id, () => {});
      this.notify("$/cancel_request", { requestId: id });
      answer.reject(requestCancelled(id));
    };
    signal.addEventListener("abort", cancel, { once: true });
    this.#pending.set(id, (response) => {
      signal.removeEventListener("abort", cancel);
      if ("result" in response && !("error" in response)) answer.resolve(response.result);
      else answer.reject(toError(response));
    });
    this.#send({ jsonrpc: "2.0", id, method, params });
    return answer.promise;
  }

  notify(method: string, params: object): void {
    this.#send({ jsonrpc: "2.0", method, params });
  }

  /** Takes a response of the client. */
  receive(response: object): void {
    const id = "id" in response ? response.id : undefined;
    const settle = this.#pending.get(id);
    this.#pending.delete(id);
    if (settle === undefined) this.#log.debug("response to unknown request");
    else settle(response);
  }
}

function toError(response: object): RequestError {
  const error = "error" in response && !("result" in response) ? response.error : undefined;
  if (!isRecord(error) || typeof error["code"] !== "number" || typeof error["message"] !== "string")
    return new RequestError(-32600, "The response is neither a result nor an error.");
  return new RequestError(error["code"], error["message"], error["data"]);
}

/** Sends requests to the client, in its protocol version. Responses are not validated. */
export interface ClientRequests {
  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<unknown>;
  /** Shows a form, or a URL to visit. */
  elicit(request: SessionElicitation, signal: AbortSignal): Promise<unknown>;
  /** Reports that the URL of an elicitation was visited. */
  completeElicitation(elicitationId: string): void;
  /** Reports a changed authentication status. Unstable. */
  authStatus(status: AuthStatusResponse): void;
}

/** The agent's requests to the client, in its protocol version. */
export interface Peer {
  requests: ClientRequests;
  buffers(sessionId: SessionId): EditorBuffers;
  /** Reports the end of running turns, in protocol versions where the prompt's response does not. */
  endTurns?(reason: string): Promise<void>;
}

export type SessionElicitation = CreateElicitationRequest & { sessionId: string };

export function createClientRequests(requester: Requester): ClientRequests {
  return {
    permission: (request, signal) => requester.request("session/request_permission", request, signal),
    elicit: (request, signal) => requester.request("elicitation/create", request, signal),
    completeElicitation: (elicitationId) => requester.notify("elicitation/complete", { elicitationId }),
    authStatus: (status) => requester.notify("auth/status_update", status),
  };
}
