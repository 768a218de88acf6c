import { spawn } from "node:child_process";
import { win32 } from "node:path";

type Env = Readonly<Record<string, string | undefined>>;

/** Opens the address in the user's browser if there probably is one. Passes it as an argument, not through a shell. */
export function openBrowser(address: string, platform: NodeJS.Platform, env: Env): void {
  const command = browserCommand(platform, env);
  if (command === undefined) return;
  const [file, ...args] = command;
  const child = spawn(file, [...args, address], { stdio: "ignore", detached: true });
  // On failure the user still has the printed address.
  child.once("error", () => child.unref());
  child.unref();
}

function browserCommand(platform: NodeJS.Platform, env: Env): [string, ...string[]] | undefined {
  // A browser at the other end of SSH could not reach the callback address on this computer.
  if (env["SSH_CONNECTION"]) return undefined;
  if (platform === "darwin") return ["open"];
  // By its name alone, Windows would search the working directory first.
  if (platform === "win32")
    return [
      win32.join(env["SystemRoot"] ?? "C:\\Windows", "System32", "rundll32.exe"),
      "url.dll,FileProtocolHandler",
    ];
  return env["DISPLAY"] || env["WAYLAND_DISPLAY"] ? ["xdg-open"] : undefined;
}
