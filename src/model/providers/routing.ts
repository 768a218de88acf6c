import { type Api, isApi } from "../../config/api.ts";
import type { Config, ModelConfig, ProviderConfig } from "../../config/schema.ts";

/** A base URL and headers for a provider, set by the editor for the lifetime of the process. */
export interface Route {
  readonly baseURL: string;
  /** Headers of each request, including authorization. */
  readonly headers: Readonly<Record<string, string>>;
  /** The editor's name of the API. */
  readonly apiType: string;
  /** The APIs that it means; the configuration may choose one of them. */
  readonly apis: readonly Api[];
}

/** The editor's routes: other base URLs for providers, or disabled providers. Not persisted. */
export class Routing {
  readonly #routes = new Map<string, Route | "disabled">();

  set(provider: string, route: Route): void {
    this.#routes.set(provider, route);
  }

  disable(provider: string): void {
    this.#routes.set(provider, "disabled");
  }

  /** Returns the editor's name of the API; undefined for providers without a route. */
  apiTypeOf(provider: string): string | undefined {
    const route = this.#routes.get(provider);
    return route === undefined || route === "disabled" ? undefined : route.apiType;
  }

  /** Providers that the editor disabled. */
  get disabled(): readonly string[] {
    return [...this.#routes].flatMap(([id, route]) => (route === "disabled" ? [id] : []));
  }

  /** Providers whose own key must not be sent, because their requests go to a routed base URL. */
  get withoutKey(): ReadonlySet<string> {
    return new Set([...this.#routes].flatMap(([id, route]) => (route === "disabled" ? [] : [id])));
  }

  /** Returns the configuration with the routes applied. */
  applyTo(config: Config): Config {
    if (this.#routes.size === 0) return config;
    const routed = [...this.#routes].flatMap(([id, route]) => (route === "disabled" ? [] : [{ id, route }]));
    const { enabled_providers: enabled, disabled_providers: others = [] } = config;
    return {
      ...config,
      provider: {
        ...config.provider,
        ...Object.fromEntries(
          routed.map(({ id, route }) => [id, routedProvider(config.provider?.[id] ?? {}, route)]),
        ),
      },
      disabled_providers: [...others.filter((id) => !routed.some((one) => one.id === id)), ...this.disabled],
      ...(enabled && { enabled_providers: [...enabled, ...routed.map(({ id }) => id)] }),
    };
  }
}

/** Drops keys, headers and APIs that were configured for the original base URL. */
function routedProvider(before: ProviderConfig, { baseURL, headers, apis }: Route): ProviderConfig {
  const { apiKey: _, apiKeyCommand: __, ...options } = before.options ?? {};
  const { api, ...rest } = before;
  const [onlyApi] = apis.length === 1 ? apis : [];
  const fits = isApi(api) && apis.includes(api);
  const chosen = fits ? api : onlyApi;
  return {
    ...rest,
    ...(chosen !== undefined && { api: chosen }),
    options: { ...options, baseURL, headers: { ...headers } },
    ...(before.models && { models: mapValues(before.models, (model) => routedModel(model, apis)) }),
  };
}

function routedModel(before: ModelConfig, apis: readonly Api[]): ModelConfig {
  const { headers: _, api, ...model } = before;
  return api !== undefined && apis.includes(api) ? { ...model, api } : model;
}

function mapValues<T>(values: Readonly<Record<string, T>>, convert: (value: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, convert(value)]));
}
