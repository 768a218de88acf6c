import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import { z } from "zod";
import { randomUuid } from "../../base/text/hash.ts";
import { isRecord } from "../../base/text/record.ts";
import type { Elicitation, ElicitationField, ElicitationOutcome } from "../../message/elicitation.ts";

/** Maximum number of fields in a form. */
const fieldsLimit = 30;

/** Converts a server's elicitation request for the editor. */
export function toElicitation(
  server: string,
  params: ElicitRequest["params"],
  callId: string | undefined,
): Elicitation {
  const request = { server, message: params.message, callId };
  if (params.mode === "url") return { ...request, mode: "url", url: params.url, id: getVisitId(params) };
  const { properties, required = [] } = params.requestedSchema;
  const all = Object.entries(properties);
  const fields = Object.fromEntries(
    all.slice(0, fieldsLimit).map(([name, schema]) => [name, toField(schema)]),
  );
  const more = all.length - fieldsLimit;
  const message =
    more > 0 ? `${params.message}\n(It asks for ${more} more fields, which are not shown.)` : params.message;
  const form = { fields, required: required.filter((name) => Object.hasOwn(fields, name)) };
  return { ...request, message, mode: "form", form };
}

/** The modern generation of the protocol has no ids and no notification of the end: the server is asked again. */
const idSchema = z.object({ elicitationId: z.string() });

/** Returns whether the server notifies the end of the visit. */
export function hasVisitId(params: ElicitRequest["params"]): boolean {
  return idSchema.safeParse(params).success;
}

function getVisitId(params: ElicitRequest["params"]): string {
  return idSchema.safeParse(params).data?.elicitationId ?? `visit-${randomUuid()}`;
}

/** Converts choices, including the older format with the names in a second list. */
function toField(schema: unknown): ElicitationField {
  if (!isRecord(schema) || typeof schema["type"] !== "string") return { type: "string" };
  const { enumNames, ...field } = schema;
  const type = schema["type"];
  const values = schema["enum"];
  if (!Array.isArray(values) || !Array.isArray(enumNames)) return { ...field, type };
  const { enum: _, ...rest } = field;
  const oneOf = values.map((value: unknown, index) => ({
    const: value,
    title: String(enumNames[index] ?? value),
  }));
  return { ...rest, type, oneOf };
}

export function toElicitResult(request: ElicitationOutcome): ElicitResult {
  switch (request.outcome) {
    case "accepted":
      return { action: "accept", content: { ...request.content } };
    case "declined":
      return { action: "decline" };
    case "cancelled":
    case "unavailable":
      return { action: "cancel" };
  }
}
