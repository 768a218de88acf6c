import { indexByName } from "../programs/dispatch-by-name.ts";

/** A program that runs the command in its arguments. Fields that end in `Flags` are lists of options, as in the program table. */
export interface Wrapper {
  /** Options that take the next word. */
  readonly valueFlags?: string;
  /** The number of operands before the command. */
  readonly skippedOperands?: number;
  /** The first operand is a file that it creates (`flock`). */
  readonly createsFirstOperand?: boolean;
  /** Accepts assignments before the command (`env A=1 make`). */
  readonly acceptsAssignments?: boolean;
  /** Adds arguments from its input (`xargs`). */
  readonly appendsArguments?: boolean;
  /** Joins the arguments and runs them in a shell (`watch`). */
  readonly runsShellText?: boolean;
  /** Builds shell text from its arguments and input (`parallel`). Always opaque. */
  readonly buildsCommands?: boolean;
  /** Options with which it runs no command (`command -v`). */
  readonly runsNothingFlags?: string;
  /** Options without a value. An option in no list may take the next word, which makes the command unknown. */
  readonly harmlessFlags?: string;
  /** Options that run or write something other than the command. */
  readonly dangerousFlags?: string;
}

/** One record per group of programs; the key lists their names, separated by blanks. */
const table: Record<string, Wrapper> = {
  sudo: {
    harmlessFlags:
      "-E -n -H -P -b -B -S -N --non-interactive --preserve-env --set-home --background --stdin --bell",
    valueFlags:
      "-u -g -h -p -C -T -r -t -U -D -R --user --group --host --prompt --close-from --command-timeout --role --type --chdir --chroot",
    acceptsAssignments: true,
    runsNothingFlags: "-l -v -k -K -V --list --validate",
    dangerousFlags: "-e -i -s -A -R -D --edit --login --shell --askpass --chroot --chdir",
  },
  doas: { harmlessFlags: "-n -L", valueFlags: "-u -C", dangerousFlags: "-s -C" },
  env: {
    harmlessFlags: "-i -0 -v --ignore-environment --null --debug -",
    valueFlags: "-u -C -S --unset --chdir --split-string",
    acceptsAssignments: true,
    dangerousFlags: "-S -C --split-string --chdir",
  },
  "timeout gtimeout": {
    harmlessFlags: "-v -f -p --preserve-status --foreground --verbose",
    valueFlags: "-k -s --kill-after --signal",
    skippedOperands: 1,
  },
  "nohup setsid": { harmlessFlags: "-c -f -w --ctty --fork --wait" },
  nice: { valueFlags: "-n --adjustment" },
  ionice: {
    harmlessFlags: "-t --ignore",
    valueFlags: "-c -n --class --classdata",
    runsNothingFlags: "-p --pid",
  },
  chrt: { harmlessFlags: "-b -f -i -o -r -a", skippedOperands: 1, runsNothingFlags: "-p --pid -m" },
  taskset: { harmlessFlags: "-a -c", skippedOperands: 1, runsNothingFlags: "-p --pid" },
  choom: { valueFlags: "-n --adjust", runsNothingFlags: "-p --pid" },
  stdbuf: { valueFlags: "-i -o -e --input --output --error" },
  time: {
    harmlessFlags: "-p -v -a -l -h -q --portability --verbose --append --quiet",
    valueFlags: "-f -o --format --output",
    dangerousFlags: "-o --output",
  },
  command: { harmlessFlags: "-p", runsNothingFlags: "-v -V" },
  builtin: {},
  exec: { harmlessFlags: "-c -l", valueFlags: "-a" },
  "xargs gxargs": {
    harmlessFlags:
      "-0 -r -t -p -x -o -i -l -e --null --no-run-if-empty --verbose --interactive --exit --open-tty",
    valueFlags:
      "-I -n -P -L -d -E -s -a --max-args --max-procs --max-lines --delimiter --arg-file --replace --max-chars --eof --process-slot-var",
    appendsArguments: true,
  },
  parallel: {
    valueFlags: "-j -a -S --jobs --arg-file --colsep -N -n",
    buildsCommands: true,
    dangerousFlags: "-S --sshlogin --sshloginfile --joblog --results --profile -J --transferfile --return",
  },
  watch: {
    harmlessFlags:
      "-d -t -b -e -g -c -x -w --differences --no-title --beep --errexit --chgexit --color --exec --precise -p",
    valueFlags: "-n --interval -q --equexit",
    runsShellText: true,
  },
  flock: {
    harmlessFlags:
      "-s -x -u -n -o -e -F --shared --exclusive --unlock --nonblock --nb --close --no-fork --verbose",
    valueFlags: "-w -E --timeout --wait --conflict-exit-code",
    skippedOperands: 1,
    createsFirstOperand: true,
    dangerousFlags: "-c --command",
  },
  "strace ltrace": {
    harmlessFlags:
      "-c -C -d -f -ff -F -h -i -k -n -N -q -qq -r -t -tt -ttt -T -v -V -w -x -xx -y -yy -z -Z -S -L",
    valueFlags: "-e -a -A -I -O -p -P -s -u -X -U -l -n -o --output -E -b",
    runsNothingFlags: "-p --attach",
    dangerousFlags: "-o --output -E -b",
  },
  caffeinate: { harmlessFlags: "-d -i -m -s -u", valueFlags: "-t -w" },
  "busybox toybox": {},
  fakeroot: {},
  faketime: { valueFlags: "-f", skippedOperands: 1 },
  cpulimit: {
    valueFlags: "-l -p -e --limit --pid --exe",
    harmlessFlags: "-z -i -b -v",
    runsNothingFlags: "-p -e --pid --exe",
  },
  valgrind: { harmlessFlags: "-q -v --quiet --verbose" },
  "setpriv prlimit numactl systemd-inhibit schedtool runcon chpst tini dumb-init eatmydata rlwrap torsocks proxychains proxychains4 setarch linux32 linux64 i386 x86_64":
    {},
  "gosu su-exec": { skippedOperands: 1 },
  "ld.so ld-linux.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld-musl-x86_64.so.1 ld-musl-aarch64.so.1":
    {},
  "dbus-run-session xvfb-run": { dangerousFlags: "-s --server-args -f -e" },
  "unbuffer winpty catchsegv": {},
  coproc: {},
};

const wrappers = indexByName(table);

export function findWrapper(name: string): Wrapper | undefined {
  return wrappers.get(name);
}
