import { hasFlag, parseOptions } from "../programs/options.ts";
import type { ParsedOptions } from "../programs/options.ts";
import { findProgram } from "../programs/program-table.ts";
import { knownText } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";
import type { Reversibility } from "./forms.ts";

const localHost =
  /^(?:https?:\/\/)?(?:[^@/]*@)?(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\]|[\w.-]+\.localhost|host\.docker\.internal)(?=[:/]|$)|^:(?:\d|\/)/i;
const readingMethods = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT"]);

/** Judges requests by their method. A server on this computer is part of what is developed: unknown. */
function judgeRequest(method: string | undefined, addresses: readonly Argument[]): Reversibility {
  if (method === undefined) return "unknown";
  const name = method.toUpperCase();
  if (readingMethods.has(name)) return "undoable";
  if (addresses.length > 0 && addresses.every(isLocal)) return "unknown";
  return { irreversible: `sends a ${name} request to a server` };
}

function isLocal({ values, known }: Argument): boolean {
  return values === undefined ? localHost.test(known) : values.every(({ text }) => localHost.test(text));
}

const curlData =
  "-d --data --data-ascii --data-binary --data-raw --data-urlencode -F --form --form-string --json";
const curlTexts =
  "-w --write-out -H --header --url --resolve --connect-to --retry-delay --data-raw --form-string -r --range -x --proxy --limit-rate -y -Y --aws-sigv4 --oauth2-bearer --interface -z --time-cond --mail-from --mail-rcpt -Q --quote";

export function judgeCurl(args: readonly Argument[]): Reversibility {
  const program = findProgram("curl") ?? {};
  const options = parseOptions(args, { ...program, textFlags: `${program.textFlags ?? ""} ${curlTexts}` });
  const addresses = [...options.operands, ...findValues(options, "--url")];
  if (hasFlag(options, "--mail-rcpt --mail-from")) return { irreversible: "sends a message" };
  if (hasFlag(options, "-T --upload-file")) return judgeRequest("PUT", addresses);
  if (hasFlag(options, "-K --config")) return "unknown";
  const given = findValues(options, "-X --request").at(-1);
  if (given !== undefined) return judgeRequest(knownText(given), addresses);
  const isPost = hasFlag(options, curlData) && !hasFlag(options, "-G --get");
  return judgeRequest(isPost ? "POST" : "GET", addresses);
}

export function judgeWget(args: readonly Argument[]): Reversibility {
  const program = findProgram("wget") ?? {};
  const options = parseOptions(args, {
    ...program,
    textFlags: `${program.textFlags ?? ""} --method --post-data --body-data`,
  });
  const given = findValues(options, "--method").at(-1);
  if (given !== undefined) return judgeRequest(knownText(given), options.operands);
  const isPost = options.flags.some(({ name }) => /^--post-(?:data|file)$/.test(name));
  return judgeRequest(isPost ? "POST" : "GET", options.operands);
}

/** HTTPie: `[METHOD] URL [ITEM…]`. Items with data make it a POST. */
export function judgeHttpie(args: readonly Argument[]): Reversibility {
  const { operands, flags } = parseOptions(args, {
    valueFlags:
      "-a --auth -A --auth-type -o --output -s --style --session --proxy --timeout --verify --cert -p --print --raw",
  });
  const hasRaw = flags.some(({ name }) => name === "--raw");
  if (flags.some(({ name }) => name === "--offline")) return "undoable";
  const [first, ...rest] = operands;
  if (first === undefined) return "unknown";
  if (/^[A-Za-z]+$/.test(first.text) && rest.length > 0) return judgeRequest(first.text, rest.slice(0, 1));
  const sends = hasRaw || rest.some(({ text }) => /^[^:=]+(?::?=|@)(?!=)/.test(text));
  return judgeRequest(sends ? "POST" : "GET", [first]);
}

/** `gh api` and `glab api`: fields make it a POST. A GraphQL query only reads unless it is a mutation. */
export function judgeApi(args: readonly Argument[]): Reversibility {
  const options = parseOptions(args, {
    valueFlags:
      "-X --method -f --raw-field -F --field --input -H --header -q --jq -t --template --hostname -p --preview --cache",
  });
  const [, path] = options.operands;
  if (path?.text === "graphql") {
    const fields = findValues(options, "-f --raw-field -F --field");
    const texts = fields.map(knownText);
    if (texts.some((text) => /\bmutation\b/.test(text ?? "")))
      return { irreversible: "sends a POST request to a server" };
    return texts.length > 0 && texts.every((text) => text !== undefined && !text.startsWith("query=@"))
      ? "undoable"
      : "unknown";
  }
  const given = findValues(options, "-X --method").at(-1);
  if (given !== undefined) return judgeRequest(knownText(given), []);
  return judgeRequest(hasFlag(options, "-f --raw-field -F --field --input") ? "POST" : "GET", []);
}

/** `rsync` and `scp` send files if the last operand is on another machine. */
export function judgeCopy(name: string, args: readonly Argument[]): Reversibility {
  const options = parseOptions(args, findProgram(name) ?? {});
  if (name === "rsync" && hasFlag(options, "-n --dry-run --list-only")) return "undoable";
  const target = options.operands.at(-1);
  const isRemote = target?.values?.some(({ text }) =>
    /^(?:[\w.@-]{2,}:(?!\\)|(?:rsync|scp|sftp):\/\/)/.test(text),
  );
  if (isRemote === true) return { irreversible: "sends files to another machine" };
  return target?.values === undefined ? "unknown" : "undoable";
}

/** Commands that only read; alone and without shell syntax they change nothing on another machine. */
const remoteReaders =
  /^(?:ls|cat|head|tail|grep|df|du|uptime|uname|hostname|whoami|id|ps|free|date|pwd|echo|true|which|stat|wc|w|who|last|nproc|printenv|journalctl|exit)(?: [^;&|<>`$()\n]*)?$/;

/** Judges a command that runs on another machine. */
export function judgeRemoteCommand(command: readonly Argument[], reason: string): Reversibility {
  const words = command.map(knownText);
  const isRead = words.every((word) => word !== undefined) && remoteReaders.test(words.join(" "));
  return isRead ? "undoable" : { irreversible: reason };
}

/** Options of ssh with which it runs no command. */
const sshWithoutCommand = "-N -V -G -Q -O";

export function judgeSsh(args: readonly Argument[]): Reversibility {
  const options = parseOptions(args, {
    valueFlags: "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w",
    stopsAtFirstOperand: true,
  });
  const [host, ...command] = options.operands;
  if (host === undefined || hasFlag(options, sshWithoutCommand)) return "unknown";
  const isLoginTest = command.length === 0 && (host.text.startsWith("git@") || hasFlag(options, "-T"));
  return isLoginTest ? "undoable" : judgeRemoteCommand(command, "runs a command on another machine");
}

function findValues({ flags }: ParsedOptions, list: string): Argument[] {
  const names = list.split(" ");
  return flags.flatMap(({ name, value }) => (names.includes(name) && value ? [value] : []));
}
