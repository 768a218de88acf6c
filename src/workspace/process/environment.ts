import { isKnownToken } from "../../base/secrets/secret-forms.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Words of a name that say that its value is a credential. Whole words only: KEYBOARD and TOKENIZERS are others. */
const SECRET_WORDS = new Set(
  "KEY KEYS TOKEN TOKENS JWT WEBHOOK SECRET SECRETS CREDENTIAL CREDENTIALS AUTH COOKIE BEARER DSN PAT PASS PWD".split(
    " ",
  ),
);
/** Words that say so at the end of a longer one too, as in PGPASSWORD and APIKEY. */
const GLUED_SECRET =
  /(?:PASSWORD|PASSWD|PASSPHRASE|SECRETS?|CREDENTIALS?|(?:API|AUTH|ACCESS|PRIVATE)(?:KEYS?|TOKENS?))$/;

/** Names that hold one of the words above and no secret: a path, a socket, a program, a setting. */
const HARMLESS = [
  /^(OLD)?PWD$/,
  /^SSH_/,
  /^GPG_/,
  /^XDG_/,
  /^LESSKEY/,
  /^GIT_CONFIG_KEY_\d+$/,
  /^XMODIFIERS$/,
  /_(PATH|FILE|FILES|DIR|HOME|SOCK|PROGRAM|HELPER|COMMAND|CMD|ID_FORMAT|TYPE|NAME|LIMIT|TTL|PARALLELISM)$/,
  /^(GIT|SUDO)_ASKPASS$/,
  /^MAX_.*TOKENS$/,
];

/** Values whose names say nothing: an address with a password in it. */
const PASSWORD_IN_URL = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i;

/** Variables with which bash would resolve command names differently than the rules assume. */
const RENAMING = /^(?:BASH_FUNC_.*|BASHOPTS|SHELLOPTS|GLOBIGNORE|CDPATH)$/;

/** What a package runner and our own launcher put in, and what would change how a command's own Node behaves. */
const OURS =
  /^(npm_(?!config_registry$)|FAIRLEAD_(?!PROCESS$)|NODE_OPTIONS$|NODE_COMPILE_CACHE$|NODE_CHANNEL_|ELECTRON_RUN_AS_NODE$|ELECTRON_NO_ATTACH_CONSOLE$)/;

/**
 * Prevents commands from waiting for input: git does not ask, pagers print, editors leave the text unchanged. The
 * terminal is declared dumb and without colours, because the output is read as text.
 */
const QUIET: Environment = {
  GIT_TERMINAL_PROMPT: "0",
  GCM_INTERACTIVE: "never",
  PAGER: "cat",
  GIT_PAGER: "cat",
  MANPAGER: "cat",
  SYSTEMD_PAGER: "cat",
  EDITOR: "true",
  VISUAL: "true",
  GIT_EDITOR: "true",
  GIT_SEQUENCE_EDITOR: "true",
  DEBIAN_FRONTEND: "noninteractive",
  TERM: "dumb",
  NO_COLOR: "1",
};

/** Some test runners obey these before NO_COLOR, and Node warns when both are set. */
const COLOURFUL = new Set(["FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM"]);

/**
 * The environment for commands that a model runs: credentials are withheld, unless their names are in `keep`
 * (`*` stands for any characters), and nothing in it makes a command wait for input.
 */
export function childEnvironment(
  env: Environment,
  options: { keep?: readonly string[] } = {},
): Record<string, string> {
  const kept = (options.keep ?? []).map(toNamePattern);
  const child: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue;
    if (kept.some((pattern) => pattern.test(name)) || isPassedOn(name, value)) child[name] = value;
  }
  return { ...child, ...withoutKept(QUIET, kept, env), ...withoutMonitor(env) };
}

/**
 * Git settings for every command, behind those that the environment gives already: a repository that came with a
 * configuration of its own must not have a program run whenever somebody asks for its status.
 */
function withoutMonitor(env: Environment): Record<string, string> {
  const given = Number(env["GIT_CONFIG_COUNT"] ?? 0);
  const count = Number.isInteger(given) && given >= 0 ? given : 0;
  return {
    GIT_CONFIG_COUNT: String(count + 1),
    [`GIT_CONFIG_KEY_${count}`]: "core.fsmonitor",
    [`GIT_CONFIG_VALUE_${count}`]: "false",
  };
}

function isPassedOn(name: string, value: string): boolean {
  return !OURS.test(name) && !RENAMING.test(name) && !COLOURFUL.has(name) && !isCredential(name, value);
}

/** Whether the variable holds a credential, by its name or by what it is. */
export function isCredential(name: string, value: string): boolean {
  if (PASSWORD_IN_URL.test(value) || isKnownToken(value)) return true;
  const upper = name.toUpperCase();
  if (upper.includes("CONNECTION_STRING")) return true;
  if (HARMLESS.some((pattern) => pattern.test(upper))) return false;
  return wordsOf(name).some((word) => SECRET_WORDS.has(word) || GLUED_SECRET.test(word));
}

/** `openaiApiKey`, `OPENAI_API_KEY` and `openai-api-key2` are the same words. */
function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .split(/[^A-Z]+/);
}

/** Variables that the user named stay unchanged. */
function withoutKept(quiet: Environment, kept: readonly RegExp[], env: Environment): Record<string, string> {
  const chosen = Object.entries(quiet).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      !(env[entry[0]] !== undefined && kept.some((pattern) => pattern.test(entry[0]))),
  );
  return Object.fromEntries(chosen);
}

/** The names that a text with `*` for any characters means. */
export function toNamePattern(name: string): RegExp {
  return new RegExp(`^${name.replaceAll(/[^\w*]/g, "\\$&").replaceAll("*", ".*")}$`);
}
