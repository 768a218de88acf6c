import type { Config, ProviderConfig } from "../../config/schema.ts";

/** Where a provider's requests go for as long as the process lives, with all that they carry. */
export interface Route {
  readonly baseURL: string;
  /** Headers of each request, authorization among them. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What the editor said of providers: another address, or not to be used. Nothing of it is stored. */
export class Routing {
  readonly #routes = new Map<string, Route | "disabled">();

  set(provider: string, route: Route): void {
    this.#routes.set(provider, route);
  }

  disable(provider: string): void {
    this.#routes.set(provider, "disabled");
  }

  /** Providers whose own key must not be sent: the route has its own headers, and is another's address. */
  get withoutKey(): ReadonlySet<string> {
    return new Set([...this.#routes].flatMap(([id, route]) => (route === "disabled" ? [] : [id])));
  }

  /** The configuration as it is with the routes. */
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

/** Nothing that was meant for the configured address goes to another one. */
function routedProvider(before: ProviderConfig, { baseURL, headers }: Route): ProviderConfig {
  const { apiKey: _, ...options } = before.options ?? {};
  const models = Object.entries(before.models ?? {}).map(([id, { headers: __, ...model }]) => [id, model]);
  return {
    ...before,
    options: { ...options, baseURL, headers: { ...headers } },
    ...(before.models && { models: Object.fromEntries(models) }),
  };
}
