import type { Writable } from "node:stream";
import { randomUuid } from "../../base/text/hash.ts";
import { childProcess } from "./child-process.ts";

/**
 * Reads commands from stdin until `.` or its end, which happens however the program ends: `+ group` guards a
 * group, `& group` notes that its first process has ended, `- group` forgets it. Remaining processes then get
 * TERM, and KILL a second later: the guarded groups, and on Linux all processes with the mark. A group whose
 * first process exists again is foreign, because its id was reused. It looks at least twice, because a process shows no
 * mark for a moment while it starts a program. `grep` has no `-F`, with
 * which some builds of BusyBox compare only the text before a NUL.
 */
const script = `
trap '' HUP INT TERM
groups=
left=
drop() { for one in $1; do [ "$one" = "$2" ] || printf ' %s' "$one"; done; }
marked() { grep -ls -- "$1" /proc/[0-9]*/environ 2>/dev/null | sed 's|^/proc/||; s|/environ$||'; }
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
  [ -n "$alive" ] || [ "$look" = 1 ] || exit 0
  sleep 0.2 2>/dev/null || sleep 1
done
for one in $groups; do kill -KILL -"$one" 2>/dev/null; done
for one in $(marked "$1"); do kill -KILL "$one" 2>/dev/null; done
exit 0
`;

/** Ends started processes if this program is killed. A small process that starts before the first of them. Not on Windows. */
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
    this.#made ??= `${randomUuid()}/`;
    return this.#made;
  }

  /**
   * Creates a unique mark for the environment of guarded processes, in {@link PROCESS_MARK}. On Linux a marked process
   * is guarded from its start: until it has the mark, its copy of the pipe keeps the watchdog waiting.
   */
  newMark(): string {
    this.#startOnce();
    return `${this.#mark}${++this.#count}/`;
  }

  guard(group: number): void {
    this.#groups.add(group);
    if (this.#input) this.#input.write(`+ ${group}\n`);
    else this.#startOnce();
  }

  /** Guards a group whose first process has ended. */
  guardBackground(group: number): void {
    this.#input?.write(`& ${group}\n`);
  }

  /** The id of an ended group may be reused. */
  forget(group: number): void {
    this.#groups.delete(group);
    this.#input?.write(`- ${group}\n`);
  }

  /** Stops the watchdog, because the program has ended all processes itself. */
  dismiss(): void {
    this.#input?.end(".\n");
    this.#input = undefined;
  }

  /** Errors are ignored: without the watchdog, processes remain only if the program is killed. */
  #startOnce(): void {
    if (this.#input !== undefined || process.platform === "win32") return;
    const dog = childProcess().spawn("/bin/sh", ["-c", script, "fairlead-watchdog", this.#mark], {
      env: { PATH: this.#path },
      cwd: "/",
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    // Undefined if no more files can be opened.
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
