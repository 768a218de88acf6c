/**
 * A language server that follows a script. Arguments: the script and a file for the messages it receives, one
 * per line. In the script, `$root` is replaced by the URI of the server's folder.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { z } from "zod";
import { readFramedMessages } from "./framed-messages.ts";

const messageSchema = z.looseObject({
  id: z.union([z.number(), z.string()]).optional(),
  method: z.string().optional(),
  params: z.looseObject({ rootUri: z.string().optional() }).nullish(),
});

const scriptSchema = z.object({
  capabilities: z.record(z.string(), z.unknown()).default({}),
  /** Responses by method, one after the other; the last is repeated. */
  answers: z.record(z.string(), z.array(z.unknown())).default({}),
  /** Messages sent after a notification or before the response to a request, by method. */
  sends: z.record(z.string(), z.array(z.unknown())).default({}),
  /** Time before the response to `initialize`. */
  initializeMs: z.number().default(0),
});

/** Actions instead of a response. */
const effectSchema = z.union([
  z.object({ $error: z.object({ code: z.number(), message: z.string() }) }),
  z.object({ $exit: z.number() }),
  z.object({ $silent: z.literal(true) }),
]);

const [scriptFile = "", record = ""] = process.argv.slice(2);
let root = "";
const counts = new Map<string, number>();

function readScript(): z.output<typeof scriptSchema> {
  return scriptSchema.parse(JSON.parse(readFileSync(scriptFile, "utf8").replaceAll("$root", root)));
}

function send(message: object): void {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function receive({ id, method = "", params }: z.infer<typeof messageSchema>): void {
  root = params?.rootUri ?? root;
  const script = readScript();
  for (const message of script.sends[method] ?? []) send(z.looseObject({}).parse(message));
  if (id === undefined || method === "") return;
  if (method === "initialize") {
    const result = { capabilities: script.capabilities };
    setTimeout(() => send({ id, result }), script.initializeMs);
    return;
  }
  const answers = script.answers[method] ?? [];
  const count = counts.get(method) ?? 0;
  counts.set(method, count + 1);
  answer(id, answers[Math.min(count, answers.length - 1)] ?? null);
}

function answer(id: number | string, result: unknown): void {
  const effect = effectSchema.safeParse(result).data;
  if (effect === undefined) send({ id, result });
  else if ("$error" in effect) send({ id, error: effect.$error });
  else if ("$exit" in effect) process.exit(effect.$exit);
}

readFramedMessages((text) => {
  appendFileSync(record, `${text}\n`);
  receive(messageSchema.parse(JSON.parse(text)));
});
