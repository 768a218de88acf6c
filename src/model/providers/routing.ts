import type { Config, ProviderConfig } from "../../config/schema.ts";

/** A base URL and headers for a provider, set by the editor for the lifetime of the process. */
export interface Route {
  readonly baseURL: string;
  /** Headers of each request, including authorization. */
  readonly headers: Readonly<Record<string, string>>;
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

  /** Providers whose own key must not be sent, because their requests go to a routed base URL. */
  get withoutKey(): ReadonlySet<string> {
    return new Set([...this.#routes].flatMap(([id, route]) => (route === "disabled" ? [] : [id])));
  }

  /** Returns the configuration with the routes applied. */
  applyTo(config: Config): Config {
    if (this.#routes.size === 0) return config;
    const routed = [...this.#routes].flatMap(([id, route]) => (route === "disabled" ? [] : [{ id, route }]));
    const disabled = [...this.#routes].flatMap(([id, route]) => (route === "disabled" ? [id] : []));
    const { enabled_providers: enabled, disabled_providers: others = [] } = config;
    return {
      ...config,
      provider: {
        ...config.provider,
        ...Object.fromEntries(
          routed.map(({ id, route }) => [id, routedProvider(config.provider?.[id] ?? {}, route)]),
        ),
      },
      disabled_providers: [...others.filter((id) => !routed.some((one) => one.id === id)), ...disabled],
      ...(enabled && { enabled_providers: [...enabled, ...routed.map(({ id }) => id)] }),
    };
  }
}

/** Drops keys and headers that were configured for the original base URL. */
function routedProvider(before: ProviderConfig, { baseURL, headers }: Route): ProviderConfig {
  const { apiKey: _, ...options } = before.options ?? {};
  const models = Object.entries(before.models ?? {}).map(([id, { headers: __, ...model }]) => [id, model]);
  return {
    ...before,
    options: { ...options, baseURL, headers: { ...headers } },
    ...(before.models && { models: Object.fromEntries(models) }),
  };
}
