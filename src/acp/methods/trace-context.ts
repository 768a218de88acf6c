import type { TraceContext } from "../../message/trace-context.ts";

/** A version, a trace id and a parent id that are not zero, and flags. */
const traceparentPattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]*)?$/;
/** Maximum characters of each value, as the specification of baggage allows. */
const valueLimit = 8_192;

/** Reads the trace context of a request's `_meta`; undefined without a valid `traceparent`. */
export function readTraceContext(
  meta: Readonly<Record<string, unknown>> | null | undefined,
): TraceContext | undefined {
  const traceparent = readValue(meta?.["traceparent"]);
  if (traceparent === undefined || !traceparentPattern.test(traceparent)) return undefined;
  const [tracestate, baggage] = [readValue(meta?.["tracestate"]), readValue(meta?.["baggage"])];
  return {
    traceparent,
    ...(tracestate !== undefined && { tracestate }),
    ...(baggage !== undefined && { baggage }),
  };
}

/** Values become headers and variables: only printable characters are allowed. */
function readValue(value: unknown): string | undefined {
  return typeof value === "string" && value.length <= valueLimit && /^[ -~]+$/.test(value)
    ? value
    : undefined;
}
