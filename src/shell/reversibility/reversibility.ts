import { indexByName } from "../programs/dispatch-by-name.ts";
import { parseOptions } from "../programs/options.ts";
import { findProgram } from "../programs/program-table.ts";
import { isShell } from "../wrappers/shells.ts";
import { findWrapper } from "../wrappers/wrapper-table.ts";
import type { Argument } from "../syntax/word.ts";
import { deployments } from "./deployments.ts";
import { matchRecord } from "./forms.ts";
import type { Reversibility, ReversibilityRecord } from "./forms.ts";
import { machine, machineReasons } from "./machine.ts";
import { packages } from "./packages.ts";
import {
  judgeApi,
  judgeCopy,
  judgeCurl,
  judgeHttpie,
  judgeRemoteCommand,
  judgeSsh,
  judgeWget,
} from "./requests.ts";
import { findRunCommand } from "./runners.ts";
import { judgeMongo, judgeRedis, judgeSqlClient, sqlClientNames } from "./statements.ts";
import { versionControl } from "./version-control.ts";

const records: ReadonlyMap<string, ReversibilityRecord> = indexByName({
  ...versionControl,
  ...packages,
  ...deployments,
  ...machine,
});

/** `input`: the text that the program reads from its input, if known. */
type Judge = (args: readonly Argument[], name: string, input?: string) => Reversibility;

const specials: ReadonlyMap<string, Judge> = indexByName<Judge>({
  curl: judgeCurl,
  wget: judgeWget,
  "http https xh xhs": judgeHttpie,
  "gh glab": (args, name) => (args[0]?.text === "api" ? judgeApi(args) : matchTable(name, args)),
  "rsync scp": (args, name) => judgeCopy(name, args),
  "ssh slogin mosh": judgeSsh,
  [sqlClientNames.join(" ")]: (args, name, input) => judgeSqlClient(name, args, input),
  "mongosh mongo": (args, _, input) => judgeMongo(args, input),
  "redis-cli valkey-cli": (args, _, input) => judgeRedis(args, input),
  kill: judgeKill,
  dd: judgeDd,
  "rm unlink shred": judgeRemoval,
});

/** Programs of the program table that run what a project or a script says. */
const runsOtherCode = new Set(
  "make gmake npm pnpm yarn npx bunx pnpx cargo go mvn gradle gradlew mvnw date".split(" "),
);

/** Maximum depth of runners in runners; above, the command is unknown. */
const runnerLimit = 8;

/**
 * Returns whether a simple command can be undone.
 * - A wrapper (`env`, `xargs`) is judged without the command it runs, which is a separate command.
 * - A runner (`npx`, `docker exec`) includes the command it runs.
 */
export function findReversibility(
  name: string,
  args: readonly Argument[],
  { input, depth = 0 }: { readonly input?: string | undefined; readonly depth?: number } = {},
): Reversibility {
  const program = toKnownName(name);
  const own = judgeProgram(program, args, input);
  if (typeof own === "object") return own;
  const run = depth < runnerLimit ? findRunCommand(program, args) : undefined;
  if (run === undefined) return own;
  if (run.place === "remote") return judgeRemoteCommand(run.words, "runs a command on another machine");
  const inner =
    run.name === undefined ? "unknown" : findReversibility(run.name, run.args, { input, depth: depth + 1 });
  return run.place === "container" && isOfMachine(inner) ? "unknown" : inner;
}

function isOfMachine(inner: Reversibility): boolean {
  return typeof inner === "object" && machineReasons.has(inner.irreversible);
}

function judgeProgram(name: string, args: readonly Argument[], input: string | undefined): Reversibility {
  const special = specials.get(name);
  if (special) return special(args, name, input);
  if (records.has(name)) return matchTable(name, args);
  if (findWrapper(name) || isDescribed(name)) return "undoable";
  return isShell(name) && args.some(({ text }) => /^-\w*c$/.test(text)) ? "undoable" : "unknown";
}

function matchTable(name: string, args: readonly Argument[]): Reversibility {
  const record = records.get(name);
  return record ? matchRecord(args, record) : "unknown";
}

/** Whether the program table says everything that the program does. */
function isDescribed(name: string): boolean {
  const program = findProgram(name);
  if (!program || runsOtherCode.has(name)) return false;
  return program.opaque === undefined && !program.interpretsCode && !program.runsItsInput;
}

/** `pip3.12` is `pip`, `mkfs.ext4` is `mkfs`. */
function toKnownName(name: string): string {
  const spellings = [
    name,
    name.replace(/\.(?:exe|cmd)$/i, ""),
    name.replace(/-?\d+(?:\.\d+)*$/, ""),
    name.replace(/^mkfs\..*$/, "mkfs"),
  ];
  return spellings.find((one) => specials.has(one) || records.has(one)) ?? name;
}

/** Job numbers and process ids in variables may name the command's own processes. */
function judgeKill(args: readonly Argument[]): Reversibility {
  const words = args.filter(({ text }) => !/^-[A-Za-z]/.test(text));
  if (args.some(({ text }) => /^-(?:0|l|L)$/.test(text))) return "undoable";
  const [first, ...others] = words;
  const targets = first?.text.startsWith("-") ? others : words;
  if (targets.some(({ values }) => values?.some(({ text }) => /^-?\d+$/.test(text))))
    return { irreversible: "ends a process" };
  return targets.every(({ text }) => text.startsWith("%")) ? "undoable" : "unknown";
}

function judgeDd(args: readonly Argument[]): Reversibility {
  const isDevice = args.some(({ text }) => /^of=\/dev\/(?!null$|stdout$|zero$)/.test(text));
  return isDevice ? { irreversible: "overwrites a disk" } : "undoable";
}

/** Files that git usually ignores and nothing can build again: secrets and databases. */
const unrecoverable =
  /^(?:\.env(?:\.(?!example$|sample$|template$|dist$|test$)[\w.-]+)?|\.envrc|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|sqlite3?|db|mdb|tfstate))$/i;

function judgeRemoval(args: readonly Argument[]): Reversibility {
  const { operands } = parseOptions(args, { valueFlags: "-n --iterations -s --size" });
  const names = operands.flatMap(({ values = [] }) =>
    values.map(({ text }) => text.replace(/^.*\/(?=.)/, "")),
  );
  const lost = names.find((file) => unrecoverable.test(file));
  return lost === undefined ? "undoable" : { irreversible: `deletes ${lost}, which git usually ignores` };
}
