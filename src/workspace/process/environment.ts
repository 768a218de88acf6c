import { isKnownToken } from "../../base/secrets/secret-forms.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Words in a variable's name that indicate a credential. Whole words only, so not KEYBOARD or TOKENIZERS. */
const SECRET_WORDS = new Set(
  "KEY KEYS TOKEN TOKENS JWT WEBHOOK SECRET SECRETS CREDENTIAL CREDENTIALS AUTH COOKIE BEARER DSN PAT PASS PWD".split(
    " ",
  ),
);
/** Words that also indicate a credential at the end of a longer word, as in PGPASSWORD and APIKEY. */
const SECRET_SUFFIX =
  /(?:PASSWORD|PASSWD|PASSPHRASE|SECRETS?|CREDENTIALS?|(?:API|AUTH|ACCESS|PRIVATE)(?:KEYS?|TOKENS?))$/;

/** Names with such a word that contain no secret: a path, a socket, a program, a setting. */
const NOT_SECRET = [
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

/** A URL with a password, whatever the variable's name. */
const PASSWORD_IN_URL = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i;

/** Variables that change how bash resolves command names, which the permission rules do not expect. */
const COMMAND_RESOLUTION = /^(?:BASH_FUNC_.*|BASHOPTS|SHELLOPTS|GLOBIGNORE|CDPATH)$/;

/** Variables of package runners and our launcher, which would change the behavior of a command's own Node. */
const INTERNAL_VARIABLES =
  /^(npm_(?!config_registry$)|FAIRLEAD_(?!PROCESS$)|NODE_OPTIONS$|NODE_COMPILE_CACHE$|NODE_CHANNEL_|ELECTRON_RUN_AS_NODE$|ELECTRON_NO_ATTACH_CONSOLE$)/;

/**
 * Prevents commands from waiting for input: git does not ask, pagers print, editors leave the text unchanged.
 * The terminal type is "dumb" without colors, because the output is read as text.
 */
const NON_INTERACTIVE: Environment = {
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

/** Some test runners prefer these to NO_COLOR, and Node warns if both are set. */
const COLOR_VARIABLES = new Set(["FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM"]);

/**
 * Environment for commands: credentials are removed unless named in `keep` (`*` matches any characters),
 * and nothing makes a command wait for input.
 */
export function createChildEnvironment(
  env: Environment,
  options: { keep?: readonly string[] } = {},
): Record<string, string> {
  const kept = (options.keep ?? []).map(toNamePattern);
  const child: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue;
    if (kept.some((pattern) => pattern.test(name)) || isPassedOn(name, value)) child[name] = value;
  }
  return { ...child, ...omitKept(NON_INTERACTIVE, kept, env), ...disableGitMonitor(env) };
}

/**
 * Disables git's file monitor, after the git settings of the environment: the configuration of an untrusted
 * repository must not start a program on `git status`.
 */
function disableGitMonitor(env: Environment): Record<string, string> {
  const given = Number(env["GIT_CONFIG_COUNT"] ?? 0);
  const count = Number.isInteger(given) && given >= 0 ? given : 0;
  return {
    GIT_CONFIG_COUNT: String(count + 1),
    [`GIT_CONFIG_KEY_${count}`]: "core.fsmonitor",
    [`GIT_CONFIG_VALUE_${count}`]: "false",
  };
}

function isPassedOn(name: string, value: string): boolean {
  return (
    !INTERNAL_VARIABLES.test(name) &&
    !COMMAND_RESOLUTION.test(name) &&
    !COLOR_VARIABLES.has(name) &&
    !isCredential(name, value)
  );
}

/** Whether the variable contains a credential, by its name or value. */
export function isCredential(name: string, value: string): boolean {
  if (PASSWORD_IN_URL.test(value) || isKnownToken(value)) return true;
  const upper = name.toUpperCase();
  if (upper.includes("CONNECTION_STRING")) return true;
  if (NOT_SECRET.some((pattern) => pattern.test(upper))) return false;
  return splitWords(name).some((word) => SECRET_WORDS.has(word) || SECRET_SUFFIX.test(word));
}

/** Splits `openaiApiKey`, `OPENAI_API_KEY` and `openai-api-key2` into the same words. */
function splitWords(name: string): string[] {
  return name
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .split(/[^A-Z]+/);
}

/** Variables named by the user stay unchanged. */
function omitKept(quiet: Environment, kept: readonly RegExp[], env: Environment): Record<string, string> {
  const chosen = Object.entries(quiet).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      !(env[entry[0]] !== undefined && kept.some((pattern) => pattern.test(entry[0]))),
  );
  return Object.fromEntries(chosen);
}

/** Converts a name with `*` wildcards to a regular expression. */
export function toNamePattern(name: string): RegExp {
  return new RegExp(`^${name.replaceAll(/[^\w*]/g, "\\$&").replaceAll("*", ".*")}$`);
}
