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
  ".vault-token",
  ".pgpass",
  ".my.cnf",
  ".password-store",
  ".local/share/keyrings",
  "Library/Keychains",
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

/** Returns where keys, and sockets of services that would act for a command, usually are. They need not exist. */
export function listCredentialPlaces(home: string, env: Environment): string[] {
  const agents = [env["SSH_AUTH_SOCK"], env["DOCKER_HOST"]?.replace(/^unix:\/\//, "")];
  const named = agents.filter((path) => path !== undefined).filter((path) => path.startsWith("/"));
  return [...places.map((place) => join(home, place)), ...sockets, ...named];
}
