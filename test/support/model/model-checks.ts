import { Ajv2020 } from "ajv/dist/2020.js";
import { isObject, toList, toObject, parseJson, toText, type JsonObject } from "../json.ts";

const toolName = /^[A-Za-z0-9_-]{1,64}$/;

/** Describes problems in the body of a chat request that a strict provider would reject. */
export function requestViolations(body: JsonObject): string[] {
  const messages = toList(body.messages).map(toObject);
  return [
    ...frameViolations(body),
    ...orderViolations(messages),
    ...messages.flatMap(messageViolations),
    ...callViolations(messages),
    ...toolViolations(body),
    ...(hasLoneSurrogate(body.messages) ? ["The messages contain half of a surrogate pair."] : []),
  ];
}

function frameViolations(body: JsonObject): string[] {
  const problems: string[] = [];
  if (!toText(body.model)) problems.push("The request names no model.");
  if (toList(body.messages).length === 0) problems.push("The request has no messages.");
  if (body.stream === true && toObject(body.stream_options).include_usage !== true) {
    problems.push("The request streams without stream_options.include_usage.");
  }
  return problems;
}

function orderViolations(messages: JsonObject[]): string[] {
  const roles = messages.map((message) => (message.role === "developer" ? "system" : message.role));
  const problems: string[] = [];
  const start = roles.findIndex((role) => role !== "system");
  if (roles.slice(start).includes("system"))
    problems.push("A system message follows the beginning of the conversation.");
  if (roles[start] !== "user")
    problems.push(`The conversation begins with the role ${String(roles[start])}.`);
  for (const [at, role] of roles.entries()) {
    if (!["system", "user", "assistant", "tool"].includes(String(role)))
      problems.push(`Unknown role ${String(role)}.`);
    if (role === "assistant" && roles[at - 1] === "assistant")
      problems.push("Two assistant messages follow each other.");
  }
  if (roles.at(-1) === "assistant") problems.push("The last message is the assistant's.");
  return problems;
}

function messageViolations(message: JsonObject): string[] {
  const problems = Object.entries(message)
    .filter(([key, value]) => value === null && !(key === "content" && message.role === "assistant"))
    .map(([key]) => `A ${String(message.role)} message has null as ${key}.`);
  if (message.role === "tool") return [...problems, ...toolMessageViolations(message)];
  if (message.role === "assistant" && toList(message.tool_calls).length > 0) return problems;
  if (message.role === "assistant" && "tool_calls" in message)
    problems.push("An assistant message has no tool calls in tool_calls.");
  if (isEmptyContent(message.content)) problems.push(`A ${String(message.role)} message is empty.`);
  return problems;
}

function toolMessageViolations(message: JsonObject): string[] {
  const sound = typeof message.content === "string" || Array.isArray(message.content);
  return sound ? [] : ["A tool message has no content."];
}

function isEmptyContent(content: unknown): boolean {
  if (typeof content === "string") return content.trim() === "";
  if (!Array.isArray(content) || content.length === 0) return true;
  return content.some((part) => isObject(part) && part.type === "text" && !toText(part.text)?.trim());
}

/** Each call has exactly one result, and the results directly follow their calls. */
function callViolations(messages: JsonObject[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === "tool") {
      const id = String(message.tool_call_id);
      if (!open.delete(id)) problems.push(`The tool message ${id} answers no call of the message before it.`);
      continue;
    }
    for (const id of open) problems.push(`The call ${id} has no tool message.`);
    open = new Set();
    for (const call of toList(message.tool_calls).map(toObject)) {
      const id = toText(call.id) ?? "";
      if (id === "") problems.push("A call has no id.");
      if (seen.has(id)) problems.push(`The call id ${id} is used twice.`);
      seen.add(id);
      open.add(id);
      problems.push(...callShapeViolations(call));
    }
  }
  for (const id of open) problems.push(`The call ${id} has no tool message.`);
  return problems;
}

function callShapeViolations(call: JsonObject): string[] {
  const problems: string[] = [];
  const { name, arguments: input } = toObject(call.function);
  if (call.type !== "function") problems.push(`A call has the type ${String(call.type)}.`);
  if (!toolName.test(String(name))) problems.push(`A call has the name ${JSON.stringify(name)}.`);
  if (!isObject(parseJson(String(input))))
    problems.push(`The arguments of a call are no JSON object: ${String(input)}`);
  return problems;
}

function toolViolations(body: JsonObject): string[] {
  if (!("tools" in body)) return "tool_choice" in body ? ["The request has a tool_choice but no tools."] : [];
  const tools = toList(body.tools).map((tool) => toObject(toObject(tool).function));
  return declarationViolations(tools.map((tool) => ({ ...tool, schema: tool.parameters })));
}

/** Describes problems of a request's tools. */
export function declarationViolations(tools: readonly JsonObject[]): string[] {
  const names = tools.map((tool) => String(tool.name));
  const twice = names.filter((name, at) => names.indexOf(name) !== at);
  return [
    ...(tools.length === 0 ? ["The request has an empty list of tools."] : []),
    ...twice.map((name) => `The tool ${name} is offered twice.`),
    ...names
      .filter((name) => !toolName.test(name))
      .map((name) => `A tool has the name ${JSON.stringify(name)}.`),
    ...tools
      .filter((tool) => !toText(tool.description))
      .map((tool) => `The tool ${String(tool.name)} has no description.`),
    ...tools.flatMap(schemaViolations),
  ];
}

function schemaViolations(tool: JsonObject): string[] {
  const schema = toObject(tool.schema);
  if (schema.type !== "object") return [`The schema of the tool ${String(tool.name)} is not of type object.`];
  const { $schema: _, ...rest } = schema;
  const problem = schemaProblem(JSON.stringify(rest));
  return problem === undefined ? [] : [`The schema of the tool ${String(tool.name)} is broken: ${problem}`];
}

/** Compiling costs milliseconds, and every request of a story has the same schemas. */
const judged = new Map<string, string | undefined>();

function schemaProblem(schema: string): string | undefined {
  if (!judged.has(schema)) judged.set(schema, compileProblem(schema));
  return judged.get(schema);
}

function compileProblem(schema: string): string | undefined {
  try {
    new Ajv2020({ strict: false, validateFormats: false }).compile(JSON.parse(schema));
    return undefined;
  } catch (error) {
    return String(error);
  }
}

export function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return !value.isWellFormed();
  if (Array.isArray(value)) return value.some(hasLoneSurrogate);
  return isObject(value) && Object.values(value).some(hasLoneSurrogate);
}
