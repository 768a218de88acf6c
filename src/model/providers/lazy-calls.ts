import { once } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { importModule } from "../../base/import-module.ts";
import type { AgentError } from "../../message/message.ts";
import type { Endpoint } from "../endpoint.ts";
import type { Send } from "../http.ts";
import type { ModelRequest, StepEnd, StepEvent } from "../model.ts";

type Call = (request: ModelRequest, endpoint: Endpoint, take: (event: StepEvent) => void) => Promise<StepEnd>;

/** Loads the module that calls models, including the SDK. */
export const loadCalls = () => import("../call/call-model.ts");

/** Calls models. The code loads with the first call. */
export class LazyCalls {
  readonly #load: () => Promise<Call>;

  constructor({ send, log }: { send: Send; log: Log }) {
    this.#load = once(async () => {
      const { callModel, Wires } = await importModule(loadCalls);
      const wires = new Wires(send);
      return (request, endpoint, take) => callModel(request, endpoint, { wires, log }, take);
    });
  }

  /** Calls the model. Resolves and rejects as `call` of `Models` does. */
  readonly call: Call = async (request, endpoint, take) => {
    const loaded = await this.#load().catch((thrown: unknown): StepEnd => {
      return failed({ code: "internal", message: messageOf(thrown), retryable: false });
    });
    return typeof loaded === "function" ? loaded(request, endpoint, take) : loaded;
  };
}

export const failed = (error: AgentError): StepEnd => ({ type: "failed", error });
