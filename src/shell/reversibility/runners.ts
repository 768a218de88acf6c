import { parseOptions } from "../programs/options.ts";
import { knownText } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** How a program runs the command in its arguments, and where. */
export interface Runner {
  /** The subcommands that name it (`compose exec`). */
  readonly words?: string;
  /** Options that take the next word. */
  readonly valueFlags?: string;
  /** The number of operands before the command: a container, a folder. */
  readonly skippedOperands?: number;
  /** `container`: changes of the machine are not those of this machine. `remote`: on another machine. */
  readonly place?: "container" | "remote";
}

const containerFlags =
  "-e --env --env-file -u --user -w --workdir -v --volume --mount --name -p --publish --network --net --entrypoint -h --hostname -l --label --platform -m --memory --cpus --add-host --gpus --restart --ulimit --tmpfs --device --cap-add --cap-drop --security-opt --index --shm-size";
const composeFlags = `${containerFlags} -f --file --profile --project-name --project-directory`;
const podFlags = "-n --namespace -c --container --context -f --filename --kubeconfig";

const table: Readonly<Record<string, readonly Runner[]>> = {
  "npx bunx pnpx uvx": [{ valueFlags: "-p --package --from --with --python -w --workspace" }],
  "npm pnpm yarn bun": [
    { words: "exec", valueFlags: "-w --workspace --filter -F --prefix -C --dir -p --package" },
    { words: "x", valueFlags: "-w --workspace --filter -F --prefix -C --dir -p --package" },
    { words: "dlx", valueFlags: "-p --package -C --dir" },
  ],
  pipx: [{ words: "run", valueFlags: "--spec --python" }],
  uv: [
    {
      words: "run",
      valueFlags: "--directory --project --with --python -p --extra --group --env-file --with-requirements",
    },
    { words: "tool run", valueFlags: "--from --with --python" },
  ],
  "poetry pdm hatch pipenv rye": [{ words: "run", valueFlags: "-C --directory -P --project -p -e --env" }],
  "bundle rbenv pyenv nodenv jenv asdf": [{ words: "exec" }],
  "conda mamba micromamba": [{ words: "run", valueFlags: "-n --name -p --prefix --cwd" }],
  mise: [{ words: "exec" }, { words: "x" }],
  direnv: [{ words: "exec", skippedOperands: 1 }],
  "cross-env dotenv env-cmd dotenvx": [
    { valueFlags: "-e -f --file -c" },
    { words: "run", valueFlags: "-f -e" },
  ],
  "python python3 py": [{ words: "-m" }],
  "docker podman nerdctl": [
    { words: "exec", valueFlags: containerFlags, skippedOperands: 1, place: "container" },
    { words: "run", valueFlags: containerFlags, skippedOperands: 1, place: "container" },
    { words: "container exec", valueFlags: containerFlags, skippedOperands: 1, place: "container" },
    { words: "container run", valueFlags: containerFlags, skippedOperands: 1, place: "container" },
    { words: "compose exec", valueFlags: composeFlags, skippedOperands: 1, place: "container" },
    { words: "compose run", valueFlags: composeFlags, skippedOperands: 1, place: "container" },
  ],
  "docker-compose podman-compose": [
    { words: "exec", valueFlags: composeFlags, skippedOperands: 1, place: "container" },
    { words: "run", valueFlags: composeFlags, skippedOperands: 1, place: "container" },
  ],
  "kubectl oc": [
    { words: "exec", valueFlags: podFlags, skippedOperands: 1, place: "remote" },
    { words: "rsh", valueFlags: podFlags, skippedOperands: 1, place: "remote" },
  ],
};

const runners: ReadonlyMap<string, readonly Runner[]> = new Map(
  Object.entries(table).flatMap(([names, found]) => names.split(" ").map((name) => [name, found] as const)),
);

/** The command that a runner runs, as name and arguments. */
export interface RunCommand {
  readonly name: string | undefined;
  readonly args: readonly Argument[];
  readonly words: readonly Argument[];
  readonly place: Runner["place"];
}

/** Returns the command in the arguments of a runner; undefined if the program is none, or runs none. */
export function findRunCommand(name: string, args: readonly Argument[]): RunCommand | undefined {
  for (const runner of runners.get(name) ?? []) {
    const rest = findRest(args, runner);
    const words = rest?.slice(runner.skippedOperands ?? 0).filter(({ text }, at) => at > 0 || text !== "--");
    const command = words && omitAssignments(words);
    const [first, ...others] = command ?? [];
    if (first && command)
      return { name: toProgramName(knownText(first)), args: others, words: command, place: runner.place };
  }
  return undefined;
}

/** Returns the operands after the runner's words; undefined if the words are others. */
function findRest(
  args: readonly Argument[],
  { words = "", valueFlags = "" }: Runner,
): readonly Argument[] | undefined {
  let rest = args;
  for (const word of words === "" ? [] : words.split(" ")) {
    const found = word.startsWith("-")
      ? rest
      : parseOptions(rest, { valueFlags, stopsAtFirstOperand: true }).operands;
    if (found[0]?.text !== word) return undefined;
    rest = found.slice(1);
  }
  return parseOptions(rest, { valueFlags, stopsAtFirstOperand: true }).operands;
}

function omitAssignments(words: readonly Argument[]): readonly Argument[] {
  const first = words.findIndex(({ text }) => !/^\w+=/.test(text));
  return first === -1 ? [] : words.slice(first);
}

/** `wrangler@3` is `wrangler`, `node_modules/.bin/tsc` is `tsc`. */
function toProgramName(text: string | undefined): string | undefined {
  return text?.replace(/(?<=.)@[^/]*$/, "").replace(/^.*\//, "");
}
