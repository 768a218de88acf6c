import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { Writable } from "node:stream";

/**
 * Reads groups to guard (`+ group`), those of them whose first process has ended (`& group`) and groups to forget
 * (`- group`) until it is dismissed (`.`) or its input ends, which it does with the program, however that ends. What is
 * still there gets TERM then, and a second later KILL: the guarded groups, and on Linux whatever has the mark in its
 * environment. A group that has its first process again is a later, foreign one.
 */
const script = `
trap '' HUP INT TERM
groups=
left=
drop() { for one in $1; do [ "$one" = "$2" ] || printf ' %s' "$one"; done; }
marked() { grep -lsF -- "$1" /proc/[0-9]*/environ 2>/dev/null | sed 's|^/proc/||; s|/environ$||'; }
while read -r sign group; do
  case $sign in
  +) groups="$groups $group" ;;
  '&') left="$left $group" ;;
  -) groups=$(drop "$groups" "$group"); left=$(drop "$left" "$group") ;;
  .) exit 0 ;;
  esac
done
for one in $left; do kill -0 "$one" 2>/dev/null && groups=$(drop "$groups" "$one"); done
first=$(marked "$1")
[ -n "$first" ] || for one in $groups; do first="$first -$one"; done
for one in $first; do kill -TERM "$one" 2>/dev/null; done
for look in 1 2 3 4 5; do
  alive=$(marked "$1")
  for one in $groups; do kill -0 -"$one" 2>/dev/null && alive="$alive $one"; done
  [ -n "$alive" ] || exit 0
  sleep 0.2 2>/dev/null || sleep 1
done
for one in $groups; do kill -KILL -"$one" 2>/dev/null; done
for one in $(marked "$1"); do kill -KILL "$one" 2>/dev/null; done
exit 0
`;

/**
 * Ends what this program has started when it was killed and could not do it itself. One small process, started with
 * the first of them; there is none on Windows.
 */
export class Watchdog {
  #made: string | undefined;
  readonly #path: string;
  #count = 0;
  readonly #groups = new Set<number>();
  #input: Writable | undefined;

  constructor(path: string | undefined) {
    this.#path = path ? `${path}:/usr/bin:/bin` : "/usr/bin:/bin";
  }

  get #mark(): string {
    this.#made ??= `${randomUUID()}/`;
    return this.#made;
  }

  /** For the environment of what is guarded, in {@link PROCESS_MARK}; no other one contains it. */
  newMark(): string {
    return `${this.#mark}${++this.#count}/`;
  }

  guard(group: number): void {
    if (process.platform === "win32") return;
    this.#groups.add(group);
    if (this.#input) this.#input.write(`+ ${group}\n`);
    else this.#start();
  }

  /** A guarded group whose first process has ended. */
  guardBackground(group: number): void {
    this.#input?.write(`& ${group}\n`);
  }

  /** The id of an ended group may be reused. */
  forget(group: number): void {
    this.#groups.delete(group);
    this.#input?.write(`- ${group}\n`);
  }

  /** Dismisses the watchdog: the program has ended everything itself. */
  dismiss(): void {
    this.#input?.end(".\n");
    this.#input = undefined;
  }

  /** Without it only a killed program leaves something behind: that it cannot start now is no reason to fail. */
  #start(): void {
    const dog = spawn("/bin/sh", ["-c", script, "fairlead-watchdog", this.#mark], {
      env: { PATH: this.#path },
      cwd: "/",
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    // There is none where the program may open no more files.
    const input: Writable | undefined = dog.stdin;
    const gone = () => {
      if (this.#input === input) this.#input = undefined;
    };
    dog.on("error", gone).on("exit", gone).unref();
    input?.on("error", () => {});
    input?.write([...this.#groups].map((group) => `+ ${group}\n`).join(""));
    this.#input = input;
  }
}
