import { ParamsReader, type Schema } from "./params-reader.ts";

export type RequestId = string | number | null;

/** A request that is being handled. */
export interface Call {
  readonly id: RequestId;
  /** Aborts when the client cancels the request. */
  readonly signal: AbortSignal;
}

/** Handles a request with unvalidated params. Returns the result, or throws. */
export type RequestHandler = (params: unknown, call: Call) => unknown;
export type NotificationHandler = (params: unknown) => void;

/** The client's requests and notifications in one version of the protocol. */
export interface ProtocolVersion {
  readonly requests: ReadonlyMap<string, RequestHandler>;
  readonly notifications: ReadonlyMap<string, NotificationHandler>;
  /** Rejects ids that are null or fractions, and an `initialize` after other requests. */
  readonly isStrict: boolean;
}

/** The generated schemas of the params of a version's methods. */
export interface ProtocolParams {
  readonly methods: Readonly<Record<string, Schema>>;
  readonly $defs: Readonly<Record<string, Schema>>;
}

/** Creates table rows whose handlers get valid params. `Requests` and `Notifications` have their types, by method. */
export class RowFactory<Requests, Notifications> {
  readonly #params: ProtocolParams;

  constructor(params: ProtocolParams) {
    this.#params = params;
  }

  /** A method of the protocol. */
  request<Method extends keyof Requests & string>(
    method: Method,
    handle: (params: Requests[Method], call: Call) => unknown,
  ): [string, RequestHandler] {
    return this.extension(method, new ParamsReader<Requests[Method]>(...this.#schemaOf(method)), handle);
  }

  /** A method that the protocol does not have. A client may leave out the params of a request. */
  extension<Params>(
    method: string,
    reader: ParamsReader<Params>,
    handle: (params: Params, call: Call) => unknown,
  ): [string, RequestHandler] {
    return [method, (params, call) => handle(reader.read(params ?? {}), call)];
  }

  notification<Method extends keyof Notifications & string>(
    method: Method,
    handle: (params: Notifications[Method]) => void,
  ): [string, NotificationHandler] {
    const reader = new ParamsReader<Notifications[Method]>(...this.#schemaOf(method));
    return [method, (params) => handle(reader.read(params))];
  }

  #schemaOf(method: string): [Schema, ProtocolParams["$defs"]] {
    const schema = this.#params.methods[method];
    if (schema === undefined) throw new Error(`The params of ${method} have no schema: run npm run generate`);
    return [schema, this.#params.$defs];
  }
}
