import type { Call, Command, Flag, ValueKind } from "../command-line/command.ts";
import { UsageError } from "../command-line/usage.ts";

const shells: Readonly<Record<string, (commands: readonly Command[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Prints a completion script, generated from the command table. */
export async function completion(
  { operands: [shell = "", kind] }: Call,
  all: readonly Command[],
): Promise<number> {
  if (shell === "values" && kind !== undefined)
    return (await import("./completion-values.ts")).printValues(kind);
  const toScript = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
  if (toScript === undefined || kind !== undefined)
    throw new UsageError(
      `completion takes bash, zsh or fish, not "${[shell, kind].join(" ").trim()}"`,
      "completion",
    );
  process.stdout.write(toScript(all));
  return 0;
}

interface NamedCommand {
  readonly name: string;
  readonly command: Command;
}

/** Lists all names, those of two words first: shells must match them before their first word alone. */
function listNames(commands: readonly Command[]): NamedCommand[] {
  const all = commands.flatMap((command) => command.names.map((name) => ({ name, command })));
  return [...all.filter(({ name }) => name.includes(" ")), ...all.filter(({ name }) => !name.includes(" "))];
}

/** Returns the words that may follow the first word. */
function getSubcommands(word: string, commands: readonly Command[]): string[] {
  return listNames(commands).flatMap(({ name }) =>
    name.startsWith(`${word} `) ? [name.slice(word.length + 1)] : [],
  );
}

const firstWords = (commands: readonly Command[]): string[] => [
  ...new Set(commands.flatMap(({ names }) => names.map((name) => name.split(" ")[0] ?? ""))),
  help,
];

/** The word `help` may precede the name of a command. */
const help = "help";

const getFlags = ({ flags }: Command): readonly Flag[] => [
  ...flags,
  { name: "help", short: "h", about: "show help" },
];

function bashScript(commands: readonly Command[]): string {
  const flagCases = listNames(commands).map(({ name, command }) => {
    const flags = getFlags(command).map((flag) => `--${flag.name}`);
    return `    ${toCasePattern(name)}) words="${flags.join(" ")}" ;;`;
  });
  const operandCases = listNames(commands).flatMap(({ name, command: { operands } }) =>
    operands?.values === undefined ? [] : [`    ${toCasePattern(name)}) kind=${operands.values} ;;`],
  );
  const verbCases = firstWords(commands)
    .map((word) => ({ word, verbs: getSubcommands(word, commands) }))
    .filter(({ verbs }) => verbs.length > 0)
    .map(({ word, verbs }) => `    ${word}) words="${verbs.join(" ")}" ;;`);
  return `# Completes fairlead in bash.
_fairlead() {
  local word="\${COMP_WORDS[COMP_CWORD]}" at=$((COMP_CWORD - 1)) words="" kind="" prefix=""
  local first="\${COMP_WORDS[1]}" second="\${COMP_WORDS[2]}"
  # --flag=value comes as three words, and so does name:tag.
  if [ "$word" = ":" ]; then prefix="\${COMP_WORDS[at]}:" word="$prefix" at=$((at - 1))
  elif [ "\${COMP_WORDS[at]}" = ":" ]; then prefix="\${COMP_WORDS[at-1]}:" word="$prefix$word" at=$((at - 2))
  elif [ "$word" = "=" ]; then word=""
  fi
  [ "\${COMP_WORDS[at]}" = "=" ] && at=$((at - 1))
  local before="\${COMP_WORDS[at]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${firstWords(commands).join(" ")} --help --version" -- "$word"))
    return
  fi
  case "$before" in
${valueCases(commands, (words) => `COMPREPLY=($(compgen -W "${words}" -- "$word")); return`)}
  esac
  if [ "$COMP_CWORD" -eq 2 ] && [ "\${word#-}" = "$word" ]; then
    case "$first" in
${verbCases.join("\n")}
    completion) words="${Object.keys(shells).join(" ")}" ;;
    ${help}) words="${firstWords(commands).join(" ")}" ;;
    esac
  fi
  case "$first:$before" in
${flagValueCases(commands)}
  esac
  if [ -n "$kind" ]; then :
  elif [ "\${word#-}" != "$word" ]; then
    case "$first $second" in
${flagCases.join("\n")}
    esac
  elif [ -z "$words" ]; then
    case "$first $second" in
${operandCases.join("\n")}
    esac
  fi
  [ -n "$kind" ] && words="$("\${COMP_WORDS[0]}" completion values "$kind" 2>/dev/null | cut -f 1)"
  [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$word"))
  COMPREPLY=("\${COMPREPLY[@]#"$prefix"}")
}
complete -o default -F _fairlead fairlead
`;
}

/** Case pattern of a name: one word matches before any second word, two words match exactly. */
const toCasePattern = (name: string): string => (name.includes(" ") ? `"${name}"` : `"${name} "*`);

/** Case branches for the values of a flag that names something, by the first word of its command. */
function flagValueCases(commands: readonly Command[]): string {
  const cases = listNames(commands).flatMap(({ name, command }) =>
    command.flags.flatMap(({ name: flag, short, values }) => {
      if (values === undefined) return [];
      const [first = ""] = name.split(" ");
      const patterns = [`${first}:--${flag}`, ...(short === undefined ? [] : [`${first}:-${short}`])];
      return [`    ${patterns.join("|")}) kind=${values} ;;`];
    }),
  );
  return [...new Set(cases)].join("\n");
}

/** Case branches for the value of a flag with a fixed set of values. */
function valueCases(commands: readonly Command[], then: (words: string) => string): string {
  const flags = commands.flatMap((command) => command.flags).filter(({ choices }) => choices !== undefined);
  const once = new Map(flags.map((flag) => [flag.name, flag.choices ?? []]));
  return [...once].map(([name, choices]) => `    --${name}) ${then(choices.join(" "))} ;;`).join("\n");
}

function zshScript(commands: readonly Command[]): string {
  const first = firstWords(commands).map((word) => zshChoice(word, describeWord(word, commands)));
  const verbs = firstWords(commands)
    .map((word) => ({ word, verbs: getSubcommands(word, commands) }))
    .filter(({ verbs }) => verbs.length > 0)
    .map(({ word, verbs }) => {
      const described = verbs.map((verb) => zshChoice(verb, describeWord(`${word} ${verb}`, commands)));
      return `    ${word}) verbs=(${described.join(" ")}) ;;`;
    });
  const flags = listNames(commands).map(({ name, command }) => {
    const values = command.operands?.values;
    const rest = values === undefined ? "" : ` rest='*:value: _fairlead_values ${values}'`;
    return `    ${toCasePattern(name)}) flags=(${getFlags(command).map(zshFlag).join(" ")})${rest} ;;`;
  });
  return `#compdef fairlead
# Completes fairlead in zsh.
_fairlead_values() {
  local -a found
  found=("\${(@f)$(_call_program values fairlead completion values $1 2>/dev/null)}")
  found=("\${(@)found//:/\\\\:}")
  found=("\${(@)found/$'\\t'/:}")
  (( $#found )) && _describe value found
}
_fairlead() {
  local -a first verbs flags
  local rest='*:file:_files'
  first=(${first.join(" ")})
  if (( CURRENT == 2 )); then
    _describe command first
    return
  fi
  if (( CURRENT == 3 )) && [[ $PREFIX != -* ]]; then
    case $words[2] in
${verbs.join("\n")}
    completion) verbs=(${Object.keys(shells).join(" ")}) ;;
    ${help}) verbs=($first) ;;
    esac
    (( $#verbs )) && _describe argument verbs && return
  fi
  case "$words[2] $words[3]" in
${flags.join("\n")}
  esac
  _arguments $flags $rest
}
if [ "$funcstack[1]" = "_fairlead" ]; then _fairlead "$@"; else compdef _fairlead fairlead; fi
`;
}

function zshFlag({ name, value, choices, values, about }: Flag): string {
  const description = `[${about.replaceAll(/[[\]\\]/g, "\\$&")}]`;
  if (value === undefined) return zshQuoted(`--${name}${description}`);
  const listed = values === undefined ? "_files" : ` _fairlead_values ${values}`;
  return zshQuoted(`--${name}=${description}:${name}:${choices ? `(${choices.join(" ")})` : listed}`);
}

/** Formats a word and its description, separated by a colon. */
const zshChoice = (word: string, about: string): string =>
  zshQuoted(`${word}:${about.replaceAll(/[:\\]/g, "\\$&")}`);

const zshQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function describeWord(word: string, commands: readonly Command[]): string {
  if (word === help) return "show the help of a command";
  const all = listNames(commands);
  const match = all.find(({ name }) => name === word) ?? all.find(({ name }) => name.startsWith(`${word} `));
  return match?.command.about ?? "";
}

function fishScript(commands: readonly Command[]): string {
  const first = firstWords(commands).map(
    (word) =>
      `complete -c fairlead -f -n __fish_use_subcommand -a ${word} -d ${fishText(describeWord(word, commands))}`,
  );
  const verbs = firstWords(commands).flatMap((word) =>
    getSubcommands(word, commands).map(
      (verb) =>
        `complete -c fairlead -f -n ${fishText(fishCondition(word, commands))} -a ${verb} -d ${fishText(describeWord(`${word} ${verb}`, commands))}`,
    ),
  );
  const flags = listNames(commands).flatMap(({ name, command }) =>
    getFlags(command).map((flag) => fishFlag(fishCondition(name, commands), flag)),
  );
  const operands = listNames(commands).flatMap(({ name, command: { operands } }) =>
    operands?.values === undefined
      ? []
      : [
          `complete -c fairlead -f -n ${fishText(fishCondition(name, commands))} -a '${fishValues(operands.values)}'`,
        ],
  );
  const shellNames = `complete -c fairlead -f -n '__fish_seen_subcommand_from completion' -a '${Object.keys(shells).join(" ")}'`;
  const helped = `complete -c fairlead -f -n '__fish_seen_subcommand_from ${help}' -a '${firstWords(commands).join(" ")}'`;
  const all = [...first, ...verbs, shellNames, helped, ...operands, ...new Set(flags)];
  return ["# Completes fairlead in fish.", ...all, ""].join("\n");
}

/** Condition that holds after a command's name and before a subcommand. */
function fishCondition(name: string, commands: readonly Command[]): string {
  const further = getSubcommands(name, commands);
  const seen = name.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
  const unseen = further.length === 0 ? [] : [`not __fish_seen_subcommand_from ${further.join(" ")}`];
  return [...seen, ...unseen].join("; and ");
}

const fishValues = (kind: ValueKind): string => `(fairlead completion values ${kind} 2>/dev/null)`;

function fishFlag(seen: string, { name, short, value, choices, values, about }: Flag): string {
  const listed = choices?.join(" ") ?? (values === undefined ? undefined : fishValues(values));
  const takes = value === undefined ? "" : listed === undefined ? " -r" : ` -x -a '${listed}'`;
  const shortName = short === undefined ? "" : ` -s ${short}`;
  return `complete -c fairlead -n ${fishText(seen)} -l ${name}${shortName}${takes} -d ${fishText(about)}`;
}

const fishText = (text: string): string => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
