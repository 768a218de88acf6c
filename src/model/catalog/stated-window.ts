/** Plausible range of a context window, in tokens. */
const smallest = 256;
const largest = 100_000_000;

/** A pattern of the context window in errors for too long requests. */
interface Statement {
  readonly pattern: RegExp;
  readonly providers: string;
}

const figure = String.raw`(\d[\d,_]*)`;
const createPattern = (before: string, after = ""): RegExp => new RegExp(`${before}${figure}${after}`, "i");

const statements: readonly Statement[] = [
  {
    pattern: createPattern(
      String.raw`maximum (?:allowed )?(?:context|model|prompt|input|sequence) length(?: of| is|:)?\s*(?:only )?`,
    ),
    providers: "OpenAI, Azure, vLLM, SGLang, OpenRouter, DeepSeek, Fireworks, xAI",
  },
  { pattern: createPattern("", String.raw` maximum context length`), providers: "Mistral" },
  { pattern: createPattern(String.raw`tokens > `, String.raw` maximum`), providers: "Anthropic, Bedrock" },
  {
    pattern: createPattern(String.raw`context limit: [\d,_]+ \+ [\d,_]+ > `),
    providers: "Anthropic, with the answer's limit",
  },
  {
    pattern: createPattern(String.raw`maximum number of (?:input )?tokens (?:allowed )?\(?`),
    providers: "Gemini",
  },
  { pattern: createPattern(String.raw`n_ctx["']?\s*[:=]\s*`), providers: "llama.cpp, LM Studio" },
  { pattern: createPattern(String.raw`(?:available )?context size \(`), providers: "llama.cpp" },
  { pattern: createPattern(String.raw`loaded with context length of only `), providers: "LM Studio" },
  { pattern: createPattern(String.raw`token limit: `), providers: "Moonshot" },
  { pattern: createPattern(String.raw`must be <= `), providers: "Together AI, TGI" },
  { pattern: createPattern(String.raw`while (?:the )?limit is `), providers: "Cerebras" },
  {
    pattern: createPattern(
      String.raw`(?:prompt|tokens?)[^.]{0,60}(?:exceeds?|cannot exceed) (?:the limit of )?`,
    ),
    providers: "Cohere, GitHub",
  },
  { pattern: createPattern(String.raw`max size: `, " tokens"), providers: "GitHub Models" },
  {
    pattern: createPattern(String.raw`context (?:length|window|size|limit)(?: of| is|:|,|\s|\(|=|tokens?)*`),
    providers: "Ollama and others",
  },
];

/** Returns the context window that an error names, in tokens; undefined if it names none. */
export function parseStatedWindow(refusal: string): number | undefined {
  for (const statement of statements) {
    const digits = statement.pattern.exec(refusal)?.[1];
    const tokens = Number(digits?.replaceAll(/[,_]/g, ""));
    if (tokens >= smallest && tokens <= largest) return tokens;
  }
  return undefined;
}
