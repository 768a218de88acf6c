/** An answer of a model, in the chunks in which a server streams it. The words are our own. */
export interface Answer {
  readonly name: string;
  readonly reasoning: readonly string[];
  readonly text: readonly string[];
  readonly calls: readonly AnswerCall[];
  readonly end: "stop" | "length";
}

export interface AnswerCall {
  readonly tool: string;
  readonly id: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The input's JSON, in chunks. */
  readonly pieces: readonly string[];
}

const nothing = { reasoning: [], text: [], calls: [], end: "stop" } as const;

const words = [
  "I",
  " looked",
  " at",
  " both",
  " files",
  ":",
  " one",
  " is",
  " empty",
  ",",
  " the",
  " other",
  " not",
  ".",
];
const odd = [
  'The "size',
  '" is',
  " {",
  "größer",
  "} —",
  " 你好",
  ",",
  "\n\t",
  "👍🏽",
  "\\",
  "[DONE]",
  ":",
  ' data: "',
  "\r\n",
  ".",
];
const thoughts = ["The", " user", " wants", ",", " hm", ":", " a", " short", " answer", " — größer", "!"];

const read = call("read", "call_r1", { filePath: "src/größe.ts", offset: 20 }, 5);
const shell = call(
  "bash",
  "call_b2",
  { command: 'grep -n "a, b: {c}" *.ts | head', description: "Finds 你好" },
  9,
);
const noInput = call("todoread", "call_t3", {}, 1);

export function call(tool: string, id: string, input: AnswerCall["input"], count: number): AnswerCall {
  return { tool, id, input, pieces: cut(JSON.stringify(input), count) };
}

function cut(text: string, count: number): string[] {
  const size = Math.ceil(text.length / count);
  return Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
    text.slice(at * size, (at + 1) * size),
  );
}

export const answers: readonly Answer[] = [
  { ...nothing, name: "text", text: words },
  { ...nothing, name: "odd text", text: odd },
  { ...nothing, name: "reasoning and text", reasoning: thoughts, text: words },
  { ...nothing, name: "a call", calls: [read] },
  { ...nothing, name: "text and a call", text: words, calls: [shell] },
  { ...nothing, name: "a call without input", text: words, calls: [noInput] },
  { ...nothing, name: "three calls", calls: [read, shell, noInput] },
  { ...nothing, name: "reasoning and two calls", reasoning: thoughts, calls: [shell, read] },
  { ...nothing, name: "text that was cut off", text: words, end: "length" },
];
