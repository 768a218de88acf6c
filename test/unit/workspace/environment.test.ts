import { expect, test } from "vitest";
import { createChildEnvironment } from "../../../src/workspace/process/environment.ts";

const quiet = createChildEnvironment({});

/** Returns the given variables that a command receives. */
function passed(env: Record<string, string>, keep?: string[]): string[] {
  return Object.keys(createChildEnvironment(env, { keep })).filter((name) => !(name in quiet));
}

const named = (...names: string[]) => Object.fromEntries(names.map((name) => [name, "x"]));

test("withholds variables whose names suggest credentials", () => {
  const secrets = named(
    "OPENAI_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "NPM_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SESSION_TOKEN",
    "PGPASSWORD_SECRET",
    "DB_PASSWORD",
    "MYSQL_PWD",
    "GOOGLE_CREDENTIALS",
    "myServiceApiKey",
    "apikey",
    "SENTRY_DSN",
    "GITLAB_PAT",
    "PGPASSWORD",
    "REDISCLI_AUTH",
    "DOCKER_AUTH_CONFIG",
    "OPENAI_KEY2",
  );
  expect(passed(secrets)).toEqual([]);
});

test("passes on variables that only resemble them", () => {
  const harmless = named(
    "KEYBOARD",
    "SSH_AUTH_SOCK",
    "GPG_TTY",
    "XDG_RUNTIME_DIR",
    "TOKENIZERS_PARALLELISM",
    "PATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "MONKEY",
    "COMPASS",
    "GOOGLE_APPLICATION_CREDENTIALS_FILE",
    "GIT_ASKPASS",
    "MAX_OUTPUT_TOKENS",
    "LANG",
    "VIRTUAL_ENV",
  );
  expect(passed(harmless)).toEqual(Object.keys(harmless));
});

test("withholds addresses with a password in them, and passes on others", () => {
  const env = {
    DATABASE_URL: "postgres://me:secret@db/x",
    HOMEPAGE: "https://example.org/a:b@c",
    PROXY: "http://p:80",
  };
  expect(passed(env)).toEqual(["HOMEPAGE", "PROXY"]);
});

test("withholds tokens of well-known services by their form", () => {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  const env = {
    SOMETHING: `sk-proj-${letters}`,
    OTHER: `ghp_${letters}`,
    THIRD: "AKIAABCDEFGHIJKLMNOP",
    FOURTH: `xoxb-${letters}`,
    SLACK_WEBHOOK_URL: "https://example.org/x",
    AZURE_STORAGE_CONNECTION_STRING: "AccountName=x",
  };
  expect(passed(env)).toEqual([]);
  expect(passed({ SKETCH: "sk-", NAME: "ghp_x" })).toEqual(["SKETCH", "NAME"]);
});

test("drops variables that change how bash resolves names", () => {
  const env = named("BASH_FUNC_ls%%", "BASHOPTS", "SHELLOPTS", "GLOBIGNORE", "CDPATH");
  expect(passed(env)).toEqual([]);
});

test("passes on credentials that the configuration names", () => {
  const env = named("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OTHER_TOKEN");
  expect(passed(env, ["GITHUB_TOKEN", "AWS_*"])).toEqual([
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
  ]);
});

test("drops what the launcher and package runners set", () => {
  const env = named(
    "NODE_OPTIONS",
    "NODE_COMPILE_CACHE",
    "npm_lifecycle_event",
    "FAIRLEAD_LOG",
    "FORCE_COLOR",
  );
  expect(passed(env)).toEqual([]);
});

test("nothing in it waits for a user", () => {
  expect(createChildEnvironment({ PAGER: "less", EDITOR: "vim", TERM: "xterm-256color" })).toEqual({
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
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "core.fsmonitor",
    GIT_CONFIG_VALUE_0: "false",
  });
});

test("git settings of the environment stay, and ours follow them", () => {
  const given = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "user.name", GIT_CONFIG_VALUE_0: "Ada" };
  expect(createChildEnvironment(given)).toMatchObject({
    ...given,
    GIT_CONFIG_COUNT: "2",
    GIT_CONFIG_KEY_1: "core.fsmonitor",
    GIT_CONFIG_VALUE_1: "false",
  });
});

test("a non-interactive setting that the configuration names stays as the user set it", () => {
  expect(createChildEnvironment({ TERM: "xterm" }, { keep: ["TERM"] })["TERM"]).toBe("xterm");
});

test("does not change its input", () => {
  const env = Object.freeze({ A: "1", B: undefined });
  expect(createChildEnvironment(env)["A"]).toBe("1");
  expect("B" in createChildEnvironment(env)).toBe(false);
});
