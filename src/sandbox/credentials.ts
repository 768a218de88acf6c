import { join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** Files and folders of keys, relative to the home folder. */
const places = [
  ".ssh",
  ".gnupg",
  ".aws",
  ".azure",
  ".config/gcloud",
  ".kube",
  ".docker",
  ".config/gh",
  ".config/glab-cli",
  ".config/hub",
  ".netrc",
  ".git-credentials",
  ".config/git/credentials",
  ".npmrc",
  ".yarnrc.yml",
  ".pypirc",
  ".gem/credentials",
  ".cargo/credentials",
  ".cargo/credentials.toml",
  ".m2/settings.xml",
  ".gradle/gradle.properties",
  ".terraform.d",
  ".config/rclone",
  ".config/sops",
  ".s3cfg",
  ".databrickscfg",
  ".vault-token",
  ".pgpass",
  ".my.cnf",
  ".password-store",
  ".local/share/keyrings",
  "Library/Keychains",
  // Configuration that Fairlead reads in addition to its own, and the logins of other agents.
  ...[".fairlead", ".opencode", ".config/opencode"].flatMap((folder) =>
    ["fairlead.json", "fairlead.jsonc", "opencode.json", "opencode.jsonc", "config.json"].map((name) =>
      join(folder, name),
    ),
  ),
  ".local/share/opencode/auth.json",
  ".codex/auth.json",
  ".claude/.credentials.json",
  ".gemini/oauth_creds.json",
  ".config/github-copilot",
  ".mozilla",
  ".config/google-chrome",
  ".config/chromium",
  "Library/Application Support/Google/Chrome",
  // Sockets through which a command could start a container with the whole disk.
  ".colima",
  ".rd",
  ".orbstack",
] as const;

/** Sockets of services that act for a process, outside of the folders that are hidden anyway. */
const sockets = ["/var/run/docker.sock", "/run/docker.sock", "/var/run/podman/podman.sock"];

const hostingKeys = [".config/gh", ".config/glab-cli"];
const gitKeys = [".ssh", ".gnupg", ".git-credentials", ".config/git/credentials", ".netrc", ...hostingKeys];
const cloudKeys = [".aws", ".azure", ".config/gcloud"];

/** Keys with which programs act elsewhere, relative to the home folder. */
const keysOfPrograms: ReadonlyMap<string, readonly string[]> = new Map([
  ["git", gitKeys],
  ["ssh", [".ssh"]],
  ["scp", [".ssh"]],
  ["sftp", [".ssh"]],
  ["rsync", [".ssh"]],
  ["gh", hostingKeys],
  ["glab", hostingKeys],
  ["npm", [".npmrc"]],
  ["pnpm", [".npmrc"]],
  ["bun", [".npmrc"]],
  ["yarn", [".npmrc", ".yarnrc.yml"]],
  ["cargo", [".cargo/credentials", ".cargo/credentials.toml"]],
  ["twine", [".pypirc"]],
  ["gem", [".gem/credentials"]],
  ["mvn", [".m2/settings.xml"]],
  ["gradle", [".gradle/gradle.properties"]],
  ["curl", [".netrc"]],
  ["kubectl", [".kube", ...cloudKeys]],
  ["helm", [".kube", ...cloudKeys]],
  ["aws", [".aws"]],
  ["az", [".azure"]],
  ["gcloud", [".config/gcloud"]],
  ["gsutil", [".config/gcloud"]],
  ["terraform", [".terraform.d", ...cloudKeys]],
  ["tofu", [".terraform.d", ...cloudKeys]],
  ["rclone", [".config/rclone"]],
  ["psql", [".pgpass"]],
  ["mysql", [".my.cnf"]],
]);

/** Returns the keys with which a program acts elsewhere, and the agent of ssh. They need not exist. */
export function listKeysOf(program: string, home: string, env: Environment): string[] {
  const keys = keysOfPrograms.get(program) ?? [];
  const agent = keys.includes(".ssh") ? env["SSH_AUTH_SOCK"] : undefined;
  return [...keys.map((place) => join(home, place)), ...(agent?.startsWith("/") ? [agent] : [])];
}

/** Returns where keys, and sockets of services that would act for a command, usually are. They need not exist. */
export function listCredentialPlaces(home: string, env: Environment): string[] {
  const agents = [env["SSH_AUTH_SOCK"], env["DOCKER_HOST"]?.replace(/^unix:\/\//, "")];
  const named = agents.filter((path) => path !== undefined).filter((path) => path.startsWith("/"));
  return [...places.map((place) => join(home, place)), ...sockets, ...named];
}
