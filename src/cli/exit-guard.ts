import { spawn } from "node:child_process";

/** How long ending may take once everything was ended. */
const limitSeconds = 2;

/**
 * Has this process killed when it has not ended in time: Node can wait for itself for ever while it ends
 * (nodejs/node#54918), and nobody would end such a process. The guard is a shell at the other end of a pipe, which is
 * gone as soon as the process is. Without bash there is none.
 */
export function guardExit(): void {
  if (process.platform === "win32") return;
  const script = `read -r -t ${limitSeconds} _; [ $? -gt 128 ] && kill -KILL ${process.pid}`;
  const guard = spawn("bash", ["-c", script], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
    env: {},
  });
  guard.on("error", () => undefined);
  guard.unref();
}
