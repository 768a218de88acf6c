import { createServer } from "node:net";
import { promisify } from "node:util";
import { once } from "node:events";
import { messageOf } from "../../base/errors.ts";
import { childProcess } from "../../workspace/process/child-process.ts";
import type { Environment } from "../../workspace/process/find-program.ts";
import { type Connections, FilterProxy } from "./filter-proxy.ts";
import { createProxyEnvironment } from "./proxy-environment.ts";
import { openSharedNamespace, type SharedNamespace } from "./shared-namespace.ts";

const trialTimeoutMs = 10_000;

/** The network of confined commands: their own loopback ports, and the hosts that the proxy allows. */
export interface FilteredNetwork {
  /** Words before the command line of the sandbox that make it use this network. */
  readonly enter: readonly string[];
  readonly proxy: FilterProxy;
  /** Returns the variables that make programs use the proxy. */
  createEnvironment(connections: Connections): Record<string, string>;
  close(): void;
}

/** Opens the network where bubblewrap is the sandbox. Returns the problem if hosts cannot be filtered here. */
export async function openLinuxNetwork(options: {
  bwrap: string;
  env: Environment;
  /** Arguments of `bwrap` that start something in the network. */
  trial: readonly string[];
}): Promise<FilteredNetwork | string> {
  const opened = await openSharedNamespace(options.bwrap, options.env);
  if (typeof opened === "string") return describeProblem(opened);
  const [program = "", ...args] = [...opened.enter, options.bwrap, ...options.trial];
  try {
    await promisify(childProcess().execFile)(program, args, { timeout: trialTimeoutMs });
  } catch (error) {
    opened.server.close();
    opened.close();
    return describeProblem(messageOf(error));
  }
  return createNetwork(opened);
}

/** Opens the network where commands share the loopback ports of the computer. */
export async function openLoopbackNetwork(): Promise<FilteredNetwork | string> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") return describeProblem("the proxy has no port");
  return createNetwork({ enter: [], server, port: address.port, close: () => {} });
}

function createNetwork(namespace: SharedNamespace): FilteredNetwork {
  const { enter, server, port } = namespace;
  const proxy = new FilterProxy();
  proxy.serve(server);
  return {
    enter,
    proxy,
    createEnvironment: ({ credentials }) => createProxyEnvironment(`http://${credentials}@127.0.0.1:${port}`),
    close: () => {
      server.close();
      proxy.close();
      namespace.close();
    },
  };
}

function describeProblem(problem: string): string {
  return `Commands in the sandbox cannot connect to single hosts: ${problem}`;
}
