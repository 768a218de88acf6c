export type JsonSchema = Readonly<Record<string, unknown>>;

/** The usable tools, prompts and resources of a server. */
export interface ServerCapabilities {
  readonly tools: readonly OfferedTool[];
  readonly prompts: readonly OfferedPrompt[];
  readonly resources: readonly OfferedResource[];
  readonly templates: readonly OfferedTemplate[];
  /** Whether it supports resources. */
  readonly hasResources: boolean;
  /** What was omitted and why, for the user. */
  readonly notes: readonly string[];
}

export const emptyCapabilities: ServerCapabilities = {
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
  /** The server's own annotations; not trusted. */
  readonly isReadOnly: boolean;
  /** Whether it is called as a task of the server. */
  readonly isTask: boolean;
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
