/**
 * A language server without a language: each line with the word `wrong` is an error. Its first argument
 * selects its behavior; faulty ones do what their name says.
 */
import { writeFileSync } from "node:fs";
import { z } from "zod";
import { readFramedMessages } from "./framed-messages.ts";

const messageSchema = z.looseObject({
  id: z.union([z.number(), z.string()]).optional(),
  method: z.string().optional(),
  params: z
    .looseObject({
      textDocument: z
        .looseObject({ uri: z.string(), version: z.number().optional(), text: z.string().optional() })
        .optional(),
      contentChanges: z.array(z.looseObject({ text: z.string() })).optional(),
    })
    .nullish(),
});

const [behavior, startsFile] = process.argv.slice(2);
if (startsFile !== undefined) writeFileSync(startsFile, `${process.pid}\n`, { flag: "a" });
const texts = new Map<string, { text: string; version: number | undefined }>();

function send(message: object): void {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function errorsOf(uri: string): object[] {
  const lines = (texts.get(uri)?.text ?? "").split("\n");
  return lines.flatMap((line, at) => {
    const column = line.indexOf("wrong");
    const start = { line: at, character: column };
    const range = { start, end: start };
    return column === -1 ? [] : [{ range, severity: 1, code: "W1", message: `"${line.trim()}" is wrong` }];
  });
}

function publish(uri: string): void {
  if (behavior === "is-asked" || behavior === "stays-silent") return;
  const version = behavior === "pushes-versions" ? { version: texts.get(uri)?.version } : {};
  const diagnostics = errorsOf(uri);
  if (behavior === "says-too-much" && diagnostics.length > 0) {
    const range = { start: { line: 0, character: 0 } };
    const much = { range, severity: 1, code: "C".repeat(10_000) };
    for (let at = 0; at < 250; at++) diagnostics.push({ ...much, message: `${at} ${"M".repeat(9_998)}` });
  }
  if (behavior === "is-odd") {
    send({ method: "textDocument/publishDiagnostics", params: null });
    send({ method: "textDocument/publishDiagnostics", params: { uri: "not an address", diagnostics } });
    send({ id: 1, method: "workspace/configuration", params: { items: [{ section: "a.b" }] } });
    send({ id: "two", method: "workspace/somethingNew" });
    send({ id: 77, result: "an answer that nobody asked for" });
    const warning = { range: { start: { line: 0, character: 0 } }, severity: 2, message: "no error" };
    diagnostics.unshift(warning, { message: "no place" });
  }
  send({ method: "textDocument/publishDiagnostics", params: { uri, ...version, diagnostics } });
}

function answer({ id, method, params }: z.infer<typeof messageSchema>): void {
  const document = params?.textDocument;
  switch (method ?? "") {
    case "initialize":
      if (behavior === "never-answers") return;
      return send({
        id,
        result: { capabilities: behavior === "is-asked" ? { diagnosticProvider: {} } : {} },
      });
    case "textDocument/didOpen":
    case "textDocument/didChange": {
      if (document === undefined) return;
      if (behavior === "crashes-on-open") {
        process.stderr.write("this language is too hard\n");
        process.exit(3);
      }
      const text = document.text ?? params?.contentChanges?.[0]?.text ?? "";
      texts.set(document.uri, { text, version: document.version });
      return publish(document.uri);
    }
    case "textDocument/didClose":
      if (document === undefined) return;
      texts.delete(document.uri);
      return publish(document.uri);
    case "textDocument/diagnostic":
      return send({ id, result: { kind: "full", items: errorsOf(document?.uri ?? "") } });
  }
}

if (behavior === "prints-noise") process.stdout.write("Loading, please wait. ".repeat(1_000));
if (behavior === "announces-too-much") process.stdout.write("Content-Length: 99999999999\r\n\r\n{");

readFramedMessages((text) => answer(messageSchema.parse(JSON.parse(text))));
