import { spawn } from "node:child_process";

type Env = Readonly<Record<string, string | undefined>>;

/** Opens the address in the person's browser where one can be expected; the address is an argument, never shell text. */
export function openBrowser(address: string, platform: NodeJS.Platform, env: Env): void {
  const command = browserCommand(platform, env);
  if (command === undefined) return;
  const [file, ...args] = command;
  const child = spawn(file, [...args, address], { stdio: "ignore", detached: true });
  // Without a browser there is still the address on the terminal.
  child.once("error", () => child.unref());
  child.unref();
}

function browserCommand(platform: NodeJS.Platform, env: Env): [string, ...string[]] | undefined {
  // A browser on the other end of the connection would not come back to this computer.
  if (env["SSH_CONNECTION"]) return undefined;
  if (platform === "darwin") return ["open"];
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler"];
  return env["DISPLAY"] || env["WAYLAND_DISPLAY"] ? ["xdg-open"] : undefined;
}
