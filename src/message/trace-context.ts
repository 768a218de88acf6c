/** The W3C trace context of a prompt, handed on to what its turn calls. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
  /** The client's own data: handed on to MCP servers and commands, not to model providers. */
  readonly baggage?: string;
}

/** Returns the headers for model providers. */
export function toTraceHeaders({ traceparent, tracestate }: TraceContext): Record<string, string> {
  return { traceparent, ...(tracestate !== undefined && { tracestate }) };
}

/** Returns the environment variables for commands. */
export function toTraceVariables(trace: TraceContext): Record<string, string> {
  return Object.fromEntries(
    Object.entries(trace).map(([name, value]) => [name.toUpperCase(), String(value)]),
  );
}
