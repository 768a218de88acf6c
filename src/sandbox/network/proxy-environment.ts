/** Programs use a variable in upper or lower case, curl's `http_proxy` in lower case only. */
const proxyVariables = [
  "HTTP_PROXY",
  "http_proxy",
  "HTTPS_PROXY",
  "https_proxy",
  "ALL_PROXY",
  "all_proxy",
  "npm_config_proxy",
  "npm_config_https_proxy",
  "YARN_HTTP_PROXY",
  "YARN_HTTPS_PROXY",
] as const;

/** Loopback inside the sandbox belongs to the commands. */
const direct = "localhost,127.0.0.1,::1";

/** Returns the variables that make programs use a proxy. */
export function createProxyEnvironment(proxy: string): Record<string, string> {
  return {
    ...Object.fromEntries(proxyVariables.map((name) => [name, proxy])),
    NO_PROXY: direct,
    no_proxy: direct,
    // It would connect with each command.
    npm_config_update_notifier: "false",
    // For fetch and http of Node; other versions ignore it.
    NODE_USE_ENV_PROXY: "1",
  };
}
