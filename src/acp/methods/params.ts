import { z } from "zod";
import { isSessionId, type SessionId } from "../../message/ids.ts";
import { invalidParams, sessionNotFound } from "../errors.ts";
import { formatParamFaults } from "../param-faults.ts";

/** Throws "session not found" for ids in another format. */
export function parseSessionId(id: string): SessionId {
  if (!isSessionId(id)) throw sessionNotFound(id);
  return id;
}

/** Returns a parser for the params of an extension method. */
export function extensionParams<Shape extends z.ZodType>(schema: Shape): (params: unknown) => z.infer<Shape> {
  return (params) => {
    const parsed = schema.safeParse(params);
    if (!parsed.success)
      throw invalidParams(formatParamFaults(z.formatError(parsed.error)) ?? "Invalid params");
    return parsed.data;
  };
}
