import { isRecord } from "../../base/text/record.ts";
import { inlineReferences } from "./inline-references.ts";
import type { Quirks } from "../quirks.ts";
import { toMoonshotSchema } from "./moonshot-schema.ts";
import { toOpenApiSchema } from "./openapi-schema.ts";
import { trimSchema } from "./trim-schema.ts";

type Json = Record<string, unknown>;

/** Converts a tool's input schema for the provider. The root is always an object. */
export function toolSchema(schema: Json, quirks: Quirks): Json {
  const trimmed = trimSchema(schema);
  const root: Json = {
    ...trimmed,
    type: "object",
    properties: isRecord(trimmed.properties) ? trimmed.properties : {},
  };
  switch (quirks.schema) {
    case "full":
      return root;
    case "openapi":
      return toOpenApiSchema(inlineReferences(root));
    case "moonshot":
      return toMoonshotSchema(inlineReferences(root));
  }
}
