import { expect } from "vitest";
import type { ModelRequest } from "./model-server.ts";

/** Checks that each request begins with the system prompt, tools and messages of the request before it. */
export function expectSamePrefixes(requests: readonly ModelRequest[]): void {
  for (const [index, request] of requests.slice(1).entries()) {
    const before = requests[index];
    const earlier = before?.messages ?? [];
    expect(JSON.stringify(request.body.tools)).toBe(JSON.stringify(before?.body.tools));
    expect(JSON.stringify(request.messages.slice(0, earlier.length))).toBe(JSON.stringify(earlier));
    expect(request.messages.length).toBeGreaterThan(earlier.length);
  }
}
