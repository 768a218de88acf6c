import { resolve } from "node:path";
import type { Env } from "../../config/paths.ts";
import type { ProviderConfig } from "../../config/schema.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import type { Check, Choice, Questions } from "../terminal/questions.ts";
import type { ChosenProvider } from "./setup-provider.ts";
import { readKey } from "./typed-key.ts";
import { UsageError } from "../command-line/usage.ts";

/** Where a provider's key comes from. */
export type KeySource =
  | { from: "nowhere" }
  /** Typed or pasted; stored with the other keys, readable by this user only. */
  | { from: "input"; key: string }
  | { from: "variable"; name: string }
  | { from: "file"; path: string }
  | { from: "command"; command: readonly string[] };

/** Asks for the key's source, unless the flag `given` names it. */
export async function chooseKey(
  provider: ChosenProvider,
  given: string | undefined,
  { questions, env }: { questions: Questions; env: Env },
): Promise<KeySource> {
  if (given !== undefined) return parseKeySource(given, questions);
  const { name, keyVariables, isLocal } = provider;
  const known = keyVariables.filter((variable) => env[variable]);
  const nothing = { value: "none", label: "No key needed" };
  const choices: Choice[] = [
    ...(isLocal ? [nothing] : []),
    ...known.map((variable) => ({ value: `env:${variable}`, label: `Use $${variable}`, hint: "it is set" })),
    { value: "type", label: "Type or paste it", hint: "stored in a file that only you can read" },
    { value: "env", label: "From an environment variable" },
    { value: "file", label: "From a file" },
    { value: "command", label: "From a command", hint: "such as a password manager's" },
    ...(provider.isCustom && !isLocal ? [nothing] : []),
  ];
  const answer = await questions.choose(`Where does the key of ${name} come from?`, choices, {
    ...(choices[0] !== undefined && { suggestion: choices[0].value }),
    accepts: isLikeKey,
  });
  if (choices.some(({ value }) => value === answer)) return askForKey(answer, questions);
  return acceptAsKey(answer, questions);
}

async function askForKey(choice: string, questions: Questions): Promise<KeySource> {
  /** Accepts a pasted key even if the question asks for something else. */
  const ask = async (
    question: string,
    toWay: (answer: string) => KeySource,
    check?: Check,
  ): Promise<KeySource> => {
    const answer = await questions.text(question, {
      check: (text) => (isKnownToken(readKey(text)) ? undefined : check?.(text)),
    });
    return isKnownToken(readKey(answer)) ? acceptAsKey(answer, questions) : toWay(answer);
  };
  switch (choice) {
    case "none":
      return { from: "nowhere" };
    case "type":
      return { from: "input", key: readKey(await questions.secret("The key:", checkKey)) };
    case "env":
      return ask("The variable's name:", (name) => ({ from: "variable", name }), checkName);
    case "file":
      return ask("The file's path:", (path) => ({ from: "file", path: resolve(path) }));
    case "command":
      return ask(
        "The command, such as: pass show openai",
        (text) => ({ from: "command", command: splitWords(text) }),
        checkCommand,
      );
    default:
      return { from: "variable", name: choice.slice("env:".length) };
  }
}

function acceptAsKey(typed: string, questions: Questions): KeySource {
  questions.say("That looks like a key, so it is used as the key.");
  return { from: "input", key: readKey(typed) };
}

/** Whether a text may be a key: a known token, or one long word of letters and digits. */
function isLikeKey(typed: string): boolean {
  const text = readKey(typed);
  return (
    isKnownToken(text) || (/^[\w.~+-]{20,500}={0,2}$/.test(text) && /\d/.test(text) && /[a-z]/i.test(text))
  );
}

/** Parses `stdin`, `none`, `env:NAME`, `file:PATH` or `command:WORDS`. */
async function parseKeySource(given: string, questions: Questions): Promise<KeySource> {
  const [, kind = "", rest = ""] = /^(\w+):?(.*)$/s.exec(given) ?? [];
  if (kind === "none") return { from: "nowhere" };
  if (kind === "stdin") return { from: "input", key: readKey(await questions.secret("The key:", checkKey)) };
  if (kind === "env" && checkName(rest) === undefined) return { from: "variable", name: rest };
  if (kind === "file" && rest !== "") return { from: "file", path: resolve(rest) };
  if (kind === "command" && checkCommand(rest) === undefined)
    return { from: "command", command: splitWords(rest) };
  throw new UsageError(
    `--key-from takes stdin, env:NAME, file:PATH, "command:WORDS" or none, not "${kind === "" ? given : kind}"`,
    "setup",
  );
}

/** Creates the provider options that name the key's source; empty when it is stored, in a standard variable, or not needed. */
export function createKeyOptions(
  source: KeySource,
  { keyVariables }: ChosenProvider,
): NonNullable<ProviderConfig["options"]> {
  switch (source.from) {
    case "nowhere":
    case "input":
      return {};
    case "variable":
      return keyVariables.includes(source.name) ? {} : { apiKey: `{env:${source.name}}` };
    case "file":
      return { apiKey: `{file:${source.path}}` };
    case "command":
      return { apiKeyCommand: [...source.command] };
  }
}

function checkKey(typed: string): string | undefined {
  return /^[!-~]+$/.test(readKey(typed)) ? undefined : "A key has no blanks and only ASCII characters.";
}

function checkCommand(text: string): string | undefined {
  return splitWords(text)[0] ? undefined : "A command begins with the name of a program.";
}

function checkName(name: string): string | undefined {
  return /^[A-Za-z_]\w*$/.test(name) ? undefined : "A variable's name has letters, digits and _ only.";
}

/** Splits at spaces, except in quotes. */
function splitWords(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
}
