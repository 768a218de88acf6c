import type { Call, Command, Flag } from "../command-line/command.ts";
import { UsageError } from "../command-line/usage.ts";

const shells: Readonly<Record<string, (commands: readonly Command[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Prints a completion script, generated from the command table. */
export async function completion({ operands: [shell = ""] }: Call, all: readonly Command[]): Promise<number> {
  const toScript = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
  if (toScript === undefined)
    throw new UsageError(`completion takes bash, zsh or fish, not "${shell}"`, "completion");
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
  const verbCases = firstWords(commands)
    .map((word) => ({ word, verbs: getSubcommands(word, commands) }))
    .filter(({ verbs }) => verbs.length > 0)
    .map(({ word, verbs }) => `    ${word}) words="${verbs.join(" ")}" ;;`);
  return `# Completes fairlead in bash.
_fairlead() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words=""
  local first="\${COMP_WORDS[1]}" second="\${COMP_WORDS[2]}"
  # --flag=value comes as three words.
  if [ "$word" = "=" ]; then word=""
  elif [ "$before" = "=" ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
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
  if [ "\${word#-}" != "$word" ]; then
    case "$first $second" in
${flagCases.join("\n")}
    esac
  fi
  [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _fairlead fairlead
`;
}

/** Case pattern of a name: one word matches before any second word, two words match exactly. */
const toCasePattern = (name: string): string => (name.includes(" ") ? `"${name}"` : `"${name} "*`);

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
  const flags = listNames(commands).map(
    ({ name, command }) =>
      `    ${toCasePattern(name)}) flags=(${getFlags(command).map(zshFlag).join(" ")}) ;;`,
  );
  return `#compdef fairlead
# Completes fairlead in zsh.
_fairlead() {
  local -a first verbs flags
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
  _arguments $flags '*:file:_files'
}
if [ "$funcstack[1]" = "_fairlead" ]; then _fairlead "$@"; else compdef _fairlead fairlead; fi
`;
}

function zshFlag({ name, value, choices, about }: Flag): string {
  const description = `[${about.replaceAll(/[[\]\\]/g, "\\$&")}]`;
  if (value === undefined) return zshQuoted(`--${name}${description}`);
  return zshQuoted(`--${name}=${description}:${name}:${choices ? `(${choices.join(" ")})` : "_files"}`);
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
  const shellNames = `complete -c fairlead -f -n '__fish_seen_subcommand_from completion' -a '${Object.keys(shells).join(" ")}'`;
  const helped = `complete -c fairlead -f -n '__fish_seen_subcommand_from ${help}' -a '${firstWords(commands).join(" ")}'`;
  const all = [...first, ...verbs, shellNames, helped, ...new Set(flags)];
  return ["# Completes fairlead in fish.", ...all, ""].join("\n");
}

/** Condition that holds after a command's name and before a subcommand. */
function fishCondition(name: string, commands: readonly Command[]): string {
  const further = getSubcommands(name, commands);
  const seen = name.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
  const unseen = further.length === 0 ? [] : [`not __fish_seen_subcommand_from ${further.join(" ")}`];
  return [...seen, ...unseen].join("; and ");
}

function fishFlag(seen: string, { name, short, value, choices, about }: Flag): string {
  const takes = value === undefined ? "" : choices === undefined ? " -r" : ` -x -a '${choices.join(" ")}'`;
  const shortName = short === undefined ? "" : ` -s ${short}`;
  return `complete -c fairlead -n ${fishText(seen)} -l ${name}${shortName}${takes} -d ${fishText(about)}`;
}

const fishText = (text: string): string => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
