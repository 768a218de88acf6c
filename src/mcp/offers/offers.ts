export type JsonSchema = Readonly<Record<string, unknown>>;

/** What a server offers, as far as it can be used. */
export interface ServerCapabilities {
  readonly tools: readonly OfferedTool[];
  readonly prompts: readonly OfferedPrompt[];
  readonly resources: readonly OfferedResource[];
  readonly templates: readonly OfferedTemplate[];
  /** Whether it answers to requests for resources at all. */
  readonly hasResources: boolean;
  /** What was left out and why, for the person. */
  readonly notes: readonly string[];
}

export const noOffers: ServerCapabilities = {
  tools: [],
  prompts: [],
  resources: [],
  templates: [],
  hasResources: false,
  notes: [],
};

export interface OfferedTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description: string;
  readonly schema: JsonSchema;
  /** What the server says of it, which nothing but the server vouches for. */
  readonly isReadOnly: boolean;
}

export interface OfferedPrompt {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly isRequired: boolean }[];
}

export interface OfferedResource {
  readonly uri: string;
  readonly name: string;
  readonly description?: string | undefined;
  readonly mimeType?: string | undefined;
}

export interface OfferedTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly description?: string | undefined;
}
