import { spawn } from "node:child_process";
import type { Writable } from "node:stream";

/**
 * Reads groups to guard (`+ group`) and to forget (`- group`) until its input ends, which it does with the program,
 * however that ends. What is then still guarded gets TERM and a second later KILL, and on Linux whatever has the mark
 * in its environment goes with it.
 */
const script = `
trap '' HUP INT TERM
groups=
while read -r sign group; do
  case $sign in
  +) groups="$groups $group" ;;
  -) kept=; for one in $groups; do [ "$one" = "$group" ] || kept="$kept $one"; done; groups=$kept ;;
  esac
done
[ -z "$groups" ] && exit 0
for one in $groups; do kill -TERM -"$one" 2>/dev/null; done
sleep 1
for one in $groups; do kill -KILL -"$one" 2>/dev/null; done
[ -d /proc/self ] || exit 0
for file in $(grep -lsF -- "$1" /proc/[0-9]*/environ 2>/dev/null); do
  pid=\${file#/proc/}; kill -KILL "\${pid%/environ}" 2>/dev/null
done
exit 0
`;

/**
 * Ends process groups when this program was killed and could not do it itself. One small process, started with the
 * first group; there is none on Windows.
 */
export class Watchdog {
  readonly #mark: string;
  readonly #path: string;
  #input: Writable | undefined;

  constructor(options: { mark: string; path: string | undefined }) {
    this.#mark = options.mark;
    this.#path = options.path ?? "/usr/bin:/bin";
  }

  guard(group: number): void {
    this.#write(`+ ${group}\n`);
  }

  forget(group: number): void {
    this.#write(`- ${group}\n`);
  }

  #write(line: string): void {
    if (process.platform === "win32") return;
    this.#input ??= this.#start();
    this.#input.write(line);
  }

  /** Without it only a killed program leaves something behind: that it cannot start is no reason to fail. */
  #start(): Writable {
    const dog = spawn("/bin/sh", ["-c", script, "fairlead-watchdog", this.#mark], {
      env: { PATH: this.#path },
      cwd: "/",
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    dog.on("error", () => {});
    dog.stdin.on("error", () => {});
    dog.unref();
    return dog.stdin;
  }
}
