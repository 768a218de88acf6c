import { rm } from "node:fs/promises";
import { organizationFile } from "../../config/load.ts";
import { loadCredentials, saveCredential } from "../../model/keys/credentials.ts";
import type { Call } from "../command-line/command.ts";
import { openApp } from "../local-app.ts";
import { print } from "../terminal/output.ts";
import { UsageError } from "../command-line/usage.ts";

/** Removes stored keys, but not those in the environment and in configuration files. */
export async function logout(call: Call): Promise<number> {
  const { folders } = openApp();
  if (call.has("organization")) {
    await rm(organizationFile(folders.data), { force: true });
    await print("Removed the organization's configuration.");
    return 0;
  }
  const stored = Object.keys(await loadCredentials(folders.data));
  if (stored.length === 0) {
    await print("No key is stored.");
    return 0;
  }
  for (const provider of selectProviders(call, stored)) {
    await saveCredential(folders.data, provider, undefined);
    await print(`Removed the key of ${provider}.`);
  }
  return 0;
}

function selectProviders(call: Call, stored: readonly string[]): readonly string[] {
  const [provider] = call.operands;
  if (call.has("all")) return stored;
  if (provider === undefined && stored.length > 1)
    throw new UsageError(`keys of ${stored.join(", ")} are stored; name one, or --all`, "logout");
  if (provider !== undefined && !stored.includes(provider))
    throw new UsageError(`no key of ${provider} is stored; stored keys: ${stored.join(", ")}`, "logout");
  return provider === undefined ? stored : [provider];
}
