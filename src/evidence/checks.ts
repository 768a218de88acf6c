import type { CheckKind } from "../message/part.ts";

type Kinds = readonly CheckKind[];
/** The arguments of a program with which it is a check of some kinds. The first row that matches counts. */
type Row = readonly [kinds: Kinds, args: RegExp];

const test: Kinds = ["test"];
const build: Kinds = ["build"];
const lint: Kinds = ["lint"];
const types: Kinds = ["types"];
/** Compiled before it is tested or examined. */
const builtTest: Kinds = ["test", "build"];
const builtLint: Kinds = ["lint", "build"];
const builtTypes: Kinds = ["types", "build"];

const any = /(?:)/;
const words = (names: string) => new RegExp(`(?:^|\\s)(?:${names})(?=\\s|$)`);
const first = (names: string) => new RegExp(`^(?:-\\S+\\s+)*(?:${names})(?=\\s|$)`);
/** Matches unless the arguments contain one of these words. */
const without = (names: string) => new RegExp(`^(?!.*(?:^|\\s)(?:${names})(?=\\s|=|$))`);

/** Programs by name, several separated by blanks. Programs and arguments in no row are not checks. */
const table: Readonly<Record<string, readonly Row[]>> = {
  "pytest py.test nose2 nosetests behave unittest tox nox": [[test, any]],
  "jest vitest mocha ava tap jasmine karma uvu wdio": [[test, any]],
  playwright: [[test, first("test")]],
  cypress: [[test, first("run")]],
  "phpunit pest paratest rspec minitest bats ctest": [[test, any]],
  cucumber: [[test, any]],
  "tsc vue-tsc tsgo": [
    [types, words("--noEmit|-noEmit")],
    [builtTypes, without("--init|--watch|-w|--showConfig")],
  ],
  "mypy pyright basedpyright pyre ty flow": [[types, any]],
  "phpstan psalm": [[types, any]],
  eslint: [[lint, any]],
  "oxlint stylelint flake8 pylint rubocop standardrb xo standard golangci-lint staticcheck shellcheck ktlint detekt phpcs yamllint markdownlint hadolint actionlint":
    [[lint, any]],
  ruff: [
    [lint, first("check")],
    [lint, /^format\b.*--check\b/],
  ],
  biome: [[lint, first("check|lint|ci")]],
  "prettier oxfmt dprint": [[lint, words("--check|-c|--list-different|-l|check")]],
  "black isort": [[lint, words("--check|--check-only|-c")]],
  "pre-commit": [[lint, first("run")]],
  cargo: [
    [builtTest, /^(?:[+-]\S+\s+)*(?:test|t|nextest\s+run)(?=\s|$)/],
    [build, /^(?:[+-]\S+\s+)*(?:build|b)(?=\s|$)/],
    [builtTypes, /^(?:[+-]\S+\s+)*(?:check|c)(?=\s|$)/],
    [builtLint, /^(?:[+-]\S+\s+)*clippy(?=\s|$)/],
    [lint, /^(?:[+-]\S+\s+)*fmt\b.*--check\b/],
  ],
  go: [
    [builtTest, first("test")],
    [build, first("build|install")],
    [builtLint, first("vet")],
  ],
  "gradle gradlew": [
    [["build", "test"], words("\\S*build")],
    [builtTest, words("\\S*[tT]est|\\S*check")],
    [lint, words("\\S*lint\\S*|\\S*ktlintCheck|\\S*detekt|\\S*spotlessCheck")],
    [build, words("\\S*assemble\\S*|\\S*compile\\S*|\\S*classes")],
  ],
  "mvn mvnw": [
    [build, /-DskipTests|-Dmaven\.test\.skip/],
    [builtTest, words("test|verify|install|package|integration-test|deploy")],
    [build, words("compile|test-compile")],
  ],
  dotnet: [
    [builtTest, first("test")],
    [build, first("build|msbuild|publish")],
    [lint, /^format\b.*--verify-no-changes/],
  ],
  swift: [
    [builtTest, first("test")],
    [build, first("build")],
  ],
  xcodebuild: [
    [builtTest, words("test|test-without-building")],
    [build, words("build|archive")],
  ],
  mix: [
    [builtTest, first("test")],
    [build, first("compile")],
    [lint, first("credo|dialyzer")],
  ],
  "flutter dart": [
    [test, first("test")],
    [types, first("analyze")],
    [build, first("build|compile")],
  ],
  "sbt lein stack cabal dune zig rebar3 meson bazel bazelisk buck2 pants": [
    [builtTest, words("test|testOnly|runtest|eunit|ct")],
    [build, words("build|compile|package")],
  ],
  cmake: [[build, words("--build")]],
  ninja: [
    [builtTest, words("test|check")],
    [build, without("-t|clean|install")],
  ],
  deno: [
    [test, first("test")],
    [lint, first("lint")],
    [lint, /^fmt\b.*--check\b/],
    [types, first("check")],
  ],
  "webpack rollup esbuild tsup parcel hugo": [[build, without("serve|--watch|-w|server|watch")]],
  "vite next nuxt astro": [[build, first("build")]],
  ng: [
    [test, first("test|e2e")],
    [build, first("build")],
    [lint, first("lint")],
  ],
  "rails rake": [
    [test, words("test\\S*|spec\\S*")],
    [lint, words("rubocop")],
  ],
  artisan: [[test, first("test")]],
  "manage.py setup.py": [[test, first("test")]],
  node: [[test, /^(?:-\S+\s+)*--test(?=\s|$)/]],
  bun: [[test, first("test")]],
  terraform: [[["check"], first("validate")]],
  helm: [[lint, first("lint")]],
};

const rows: ReadonlyMap<string, readonly Row[]> = new Map(
  Object.entries(table).flatMap(([names, list]) =>
    names.split(" ").map((name): [string, readonly Row[]] => [name, list]),
  ),
);

/** Kinds by the names of scripts and targets that are usual for them. */
const scriptNames: readonly Row[] = [
  [test, /^(?:[\w-]+:)?(?:tests?|unit|e2e|integration|specs?|coverage|jest|vitest|mocha|pytest)(?:[:._-]|$)/],
  [types, /^(?:types?|typecheck|type-check|check-types|check:types?|tsc|ts:check|check-ts|mypy)(?:[:._-]|$)/],
  [
    lint,
    /^(?:lint|linter|eslint|oxlint|ruff|clippy|format[:_-]check|fmt[:_-]check|prettier[:_-]check|vet)(?:[:._-](?!fix)|$)/,
  ],
  [["check"], /^(?:check|checks|verify|validate|ci|qa|all)(?:[:._-]|$)/],
  [build, /^(?:build|compile|bundle|dist)(?:[:._-]|$)/],
];

/** Options with which programs only print something. */
const informs =
  /(?:^|\s)(?:--version|--help|--collect-only|--co|--listTests|--list|--list-tests|--dry-run|--just-print)(?=\s|=|$)/;

/** Returns which checks a simple command is, also inside runners (`npx`, `docker compose run`); none if it is unknown. */
export function findCheckKinds(command: string): Kinds {
  const inner = unwrap(command.split(/\s+/).filter((word) => word !== ""));
  const [program = "", ...args] = inner;
  const rest = args.join(" ");
  if (informs.test(` ${rest}`)) return [];
  const name = baseName(program);
  const known = rows.get(name)?.find(([, pattern]) => pattern.test(rest));
  return known?.[0] ?? findScriptKinds(name, args);
}

const packageManagers: ReadonlySet<string> = new Set(["npm", "pnpm", "yarn", "bun", "composer"]);
const targetRunners: ReadonlySet<string> = new Set([
  "make",
  "gmake",
  "just",
  "task",
  "mage",
  "nx",
  "turbo",
  "lerna",
  "moon",
  "rush",
]);

/** Returns the kinds of a script of a package manager or of a target of a build tool. */
function findScriptKinds(name: string, args: readonly string[]): Kinds {
  const operands = listOperands(args, scriptValueFlags);
  if (packageManagers.has(name)) return kindsOfName(findScriptName(name, operands));
  if (name === "node") return args[0] === "--run" ? kindsOfName(args[1]) : [];
  if (name === "deno") return operands[0] === "task" ? kindsOfName(operands[1]) : [];
  if (!targetRunners.has(name)) return [];
  if (name === "make" || name === "gmake") {
    if (args.some((word) => /^-\w*n\w*$/.test(word))) return [];
    const targets = operands.filter((word) => !word.includes("="));
    // The conventions of GNU: `all` is built, `check` is tested.
    if (targets.every((word) => word === "all")) return build;
    if (targets.some((word) => word === "check" || word === "distcheck")) return builtTest;
    return mergeKinds(targets.map(kindsOfName));
  }
  const names = operands.filter((word) => !["run", "run-many", "affected", "exec"].includes(word));
  return mergeKinds(names.flatMap((word) => word.split(/[:#,]/)).map(kindsOfName));
}

function findScriptName(name: string, [command, script]: readonly string[]): string | undefined {
  if (command === "run" || command === "run-script") return script;
  if (command === "t" || command === "tst") return "test";
  return name === "npm" && command !== "test" ? undefined : command;
}

function kindsOfName(name: string | undefined): Kinds {
  if (name === undefined) return [];
  return scriptNames.find(([, pattern]) => pattern.test(name))?.[0] ?? [];
}

function mergeKinds(lists: readonly Kinds[]): Kinds {
  return [...new Set(lists.flat())];
}

const set = (names: string): ReadonlySet<string> => new Set(names.split(" "));
const scriptValueFlags = set(
  "--prefix -w --workspace -C --dir --cwd --filter -F -f -j --project --directory --target -t --targets",
);

/** A program that runs the command after its own options and operands. */
interface Runner {
  /** Its words, after which its options begin. */
  readonly words: readonly string[];
  /** Options that take the next word. */
  readonly values: ReadonlySet<string>;
  /** Operands before the command: a service, an image. */
  readonly skipped: number;
}

const containerFlags = set(
  "-e --env -v --volume -w --workdir -u --user --name -p --publish --entrypoint --network --env-file -l --label -n --namespace -c --container --platform --mount",
);
const noFlags = set("");
const runner = (text: string, values = noFlags, skipped = 0): Runner => ({
  words: text.split(" "),
  values,
  skipped,
});

const pythonFlags = set(
  "--with --python -p --extra --group --package --env-file --directory --project -n --name",
);
const runners: readonly Runner[] = [
  ...[
    "npx",
    "bunx",
    "pnpx",
    "npm exec",
    "npm x",
    "pnpm exec",
    "pnpm dlx",
    "yarn exec",
    "yarn dlx",
    "bun x",
  ].map((text) => runner(text, set("-p --package -w --workspace --filter"))),
  ...[
    "poetry run",
    "uv run",
    "uv tool run",
    "uvx",
    "pdm run",
    "hatch run",
    "pipenv run",
    "rye run",
    "conda run",
    "mamba run",
  ].map((text) => runner(text, pythonFlags)),
  ...[
    "bundle exec",
    "mise exec",
    "asdf exec",
    "rbenv exec",
    "pyenv exec",
    "opam exec",
    "corepack",
    "composer exec",
    "nyc",
    "c8",
  ].map((text) => runner(text)),
  ...["timeout", "gtimeout"].map((text) => runner(text, set("-k -s --kill-after --signal"), 1)),
  ...["env", "time", "nice", "nohup", "sudo", "command", "exec", "xvfb-run", "cross-env", "stdbuf"].map(
    (text) => runner(text, set("-u -n -s")),
  ),
  runner("direnv exec", noFlags, 1),
  ...[
    "docker compose run",
    "docker compose exec",
    "docker-compose run",
    "docker-compose exec",
    "podman compose run",
    "podman-compose run",
  ].map((text) => runner(text, containerFlags, 1)),
  ...[
    "docker run",
    "docker exec",
    "docker container run",
    "docker container exec",
    "podman run",
    "podman exec",
    "nerdctl run",
    "kubectl exec",
    "oc exec",
  ].map((text) => runner(text, containerFlags, 1)),
  ...["coverage run -m", "python -m", "python3 -m", "py -m", "php", "python", "python3", "ruby"].map((text) =>
    runner(text),
  ),
];

/** Nested runners that are removed at most. */
const unwrapLimit = 6;

/** Removes runners in front of a command: `npx -y vitest run` is `vitest run`. */
function unwrap(given: readonly string[]): readonly string[] {
  let argv = given;
  for (let depth = 0; depth < unwrapLimit; depth++) {
    while (/^\w+=/.test(argv[0] ?? "")) argv = argv.slice(1);
    const inner = removeRunner(argv);
    if (inner === undefined) break;
    argv = inner;
  }
  return argv;
}

function removeRunner(argv: readonly string[]): readonly string[] | undefined {
  const compose =
    argv[1] === "compose"
      ? ["docker compose", ...skipFlags(argv.slice(2), set("-f --file --profile -p --env-file"))]
      : [];
  const normal = compose.length > 0 ? ["docker", "compose", ...compose.slice(1)] : argv;
  for (const { words: own, values, skipped } of runners) {
    const name = [baseName(normal[0] ?? ""), ...normal.slice(1)];
    if (!own.every((word, index) => name[index] === word)) continue;
    let rest = skipFlags(normal.slice(own.length), values);
    for (let count = 0; count < skipped; count++) rest = skipFlags(rest.slice(1), values);
    return rest.length === 0 ? undefined : rest;
  }
  return undefined;
}

function skipFlags(argv: readonly string[], values: ReadonlySet<string>): readonly string[] {
  let index = 0;
  while (argv[index]?.startsWith("-")) index += values.has(argv[index] ?? "") ? 2 : 1;
  return argv.slice(index);
}

function listOperands(args: readonly string[], values: ReadonlySet<string>): string[] {
  return args.filter((word, index) => !word.startsWith("-") && !values.has(args[index - 1] ?? ""));
}

function baseName(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1).replace(/\.(?:exe|cmd|bat)$/i, "");
}

/** Programs that show or move things without running the project. */
const readers = set(
  "cat ls grep egrep fgrep rg ag find fd head tail wc sort uniq cut awk sed tr diff cmp file stat du df pwd echo printf which type command true false test [ cd pushd popd mkdir rmdir rm cp mv touch chmod chown ln git gh glab tree less more jq yq basename dirname date sleep env export set unset source . wait read exit : hash xxd od tee whoami id uname ps kill pgrep open code clear history curl wget",
);

/** Whether the command only shows or moves things. */
export function isHarmless(command: string): boolean {
  const [program = ""] = command
    .trim()
    .split(/\s+/)
    .filter((word) => !/^\w+=/.test(word));
  return readers.has(baseName(program));
}

/** Whether an unknown command may be a check: its text says so, as in `./scripts/run-tests.sh`. */
export function mayBeCheck(command: string): boolean {
  return /tests?|spec|check|verif|valid|lint|build|compil|(?:^|\W)ci(?:\W|$)/i.test(command);
}

/** Commands that rewrite files without naming them. */
const changers =
  /^(?:git\s+(?:stash(?!\s+(?:list|show))|reset\s.*--hard|pull|merge|rebase|apply|am|cherry-pick|revert|restore(?!\s+--staged)|switch|checkout(?!\s+-b\s))|(?:npx\s+)?(?:prettier|oxfmt|eslint|oxlint|biome|ruff|stylelint|rubocop)\s.*(?:--write|--fix|-w|-A|-a)(?=\s|$)|ruff\s+format(?!.*--check)|cargo\s+fmt(?!.*--check)|cargo\s+fix|gofmt\s.*-w|goimports\s.*-w|black\s(?!.*--check)|isort\s(?!.*--check)|rustfmt\s(?!.*--check)|dotnet\s+format(?!.*--verify)|mix\s+format(?!.*--check)|(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:format|fmt|lint:fix|fix)(?=\s|$))/;

/** Whether the command rewrites files of the project that it does not name. */
export const rewritesFiles = (command: string): boolean => changers.test(command.trim());
