/**
 * Request parameters of chat completions that agent settings may contain outside `options`.
 * Sources: the API references of OpenAI, OpenRouter, vLLM, llama.cpp, DeepSeek, Qwen and Z.ai, November 2026.
 */
const wireNames = `
  reasoning_effort reasoning include_reasoning thinking thinking_budget enable_thinking chat_template_kwargs
  verbosity max_tokens max_completion_tokens n_predict num_ctx keep_alive
  top_k top_a min_p typical_p mirostat mirostat_eta mirostat_tau
  presence_penalty frequency_penalty repetition_penalty repeat_penalty
  seed stop logit_bias logprobs top_logprobs response_format parallel_tool_calls
  user metadata service_tier prompt_cache_key prompt_cache_retention safety_identifier
  provider transforms plugins models route web_search_options
`;

/** Names that the model library translates. */
const libraryNames = ["reasoningEffort", "textVerbosity"];

const parameters: ReadonlyMap<string, string> = new Map([
  ...wireNames
    .trim()
    .split(/\s+/)
    .flatMap((name): [string, string][] => [
      [name, name],
      [toCamelCase(name), name],
    ]),
  ...libraryNames.map((name): [string, string] => [name, name]),
]);

/** All accepted spellings of parameters. */
export const providerParameterNames: readonly string[] = [...parameters.keys()];

/** Returns the wire name of a parameter, such as `top_k` for `topK`; undefined if it is unknown. */
export function providerParameter(name: string): string | undefined {
  return parameters.get(name);
}

function toCamelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
