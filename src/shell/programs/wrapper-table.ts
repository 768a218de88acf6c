import { byName } from "./dispatch-by-name.ts";

/** A program that runs the command in its arguments. */
export interface Wrapper {
  readonly values?: string;
  /** Operands before the command. */
  readonly skip?: number;
  /** The first operand is a file that it makes. */
  readonly makesFirst?: boolean;
  /** Assignments may stand before the command. */
  readonly assigns?: boolean;
  /** More arguments are added when it runs. */
  readonly appends?: boolean;
  /** The arguments are joined and given to a shell. */
  readonly joins?: boolean;
  /** It makes shell text out of its arguments and its input. */
  readonly builds?: boolean;
  /** Options with which it runs nothing. */
  readonly looks?: string;
  /** Options that change nothing of this. Others than the listed ones may take a word, so that the command is not known. */
  readonly flags?: string;
  /** Options with which it runs or writes something that is not its command. */
  readonly danger?: string;
}

/** By name; several names share an entry with blanks between. */
const table: Record<string, Wrapper> = {
  sudo: {
    flags: "-E -n -H -P -b -B -S -N --non-interactive --preserve-env --set-home --background --stdin --bell",
    values:
      "-u -g -h -p -C -T -r -t -U -D -R --user --group --host --prompt --close-from --command-timeout --role --type --chdir --chroot",
    assigns: true,
    looks: "-l -v -k -K -V --list --validate",
    danger: "-e -i -s -A -R -D --edit --login --shell --askpass --chroot --chdir",
  },
  doas: { flags: "-n -L", values: "-u -C", danger: "-s -C" },
  env: {
    flags: "-i -0 -v --ignore-environment --null --debug -",
    values: "-u -C -S --unset --chdir --split-string",
    assigns: true,
    danger: "-S -C --split-string --chdir",
  },
  "timeout gtimeout": {
    flags: "-v -f -p --preserve-status --foreground --verbose",
    values: "-k -s --kill-after --signal",
    skip: 1,
  },
  "nohup setsid": { flags: "-c -f -w --ctty --fork --wait" },
  nice: { values: "-n --adjustment" },
  ionice: { flags: "-t --ignore", values: "-c -n --class --classdata", looks: "-p --pid" },
  chrt: { flags: "-b -f -i -o -r -a", skip: 1, looks: "-p --pid -m" },
  taskset: { flags: "-a -c", skip: 1, looks: "-p --pid" },
  choom: { values: "-n --adjust", looks: "-p --pid" },
  stdbuf: { values: "-i -o -e --input --output --error" },
  time: {
    flags: "-p -v -a -l -h -q --portability --verbose --append --quiet",
    values: "-f -o --format --output",
    danger: "-o --output",
  },
  command: { flags: "-p", looks: "-v -V" },
  builtin: {},
  exec: { flags: "-c -l", values: "-a" },
  "xargs gxargs": {
    flags: "-0 -r -t -p -x -o -i -l -e --null --no-run-if-empty --verbose --interactive --exit --open-tty",
    values:
      "-I -n -P -L -d -E -s -a --max-args --max-procs --max-lines --delimiter --arg-file --replace --max-chars --eof --process-slot-var",
    appends: true,
  },
  parallel: {
    values: "-j -a -S --jobs --arg-file --colsep -N -n",
    builds: true,
    danger: "-S --sshlogin --sshloginfile --joblog --results --profile -J --transferfile --return",
  },
  watch: {
    flags:
      "-d -t -b -e -g -c -x -w --differences --no-title --beep --errexit --chgexit --color --exec --precise -p",
    values: "-n --interval -q --equexit",
    joins: true,
  },
  flock: {
    flags: "-s -x -u -n -o -e -F --shared --exclusive --unlock --nonblock --nb --close --no-fork --verbose",
    values: "-w -E --timeout --wait --conflict-exit-code",
    skip: 1,
    makesFirst: true,
    danger: "-c --command",
  },
  "strace ltrace": {
    flags: "-c -C -d -f -ff -F -h -i -k -n -N -q -qq -r -t -tt -ttt -T -v -V -w -x -xx -y -yy -z -Z -S -L",
    values: "-e -a -A -I -O -p -P -s -u -X -U -l -n -o --output -E -b",
    looks: "-p --attach",
    danger: "-o --output -E -b",
  },
  caffeinate: { flags: "-d -i -m -s -u", values: "-t -w" },
  "busybox toybox": {},
  fakeroot: {},
  faketime: { values: "-f", skip: 1 },
  cpulimit: { values: "-l -p -e --limit --pid --exe", flags: "-z -i -b -v", looks: "-p -e --pid --exe" },
  valgrind: { flags: "-q -v --quiet --verbose" },
  "setpriv prlimit numactl systemd-inhibit schedtool runcon chpst tini dumb-init eatmydata rlwrap torsocks proxychains proxychains4 setarch linux32 linux64 i386 x86_64":
    {},
  "gosu su-exec": { skip: 1 },
  "ld.so ld-linux.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld-musl-x86_64.so.1 ld-musl-aarch64.so.1":
    {},
  "dbus-run-session xvfb-run": { danger: "-s --server-args -f -e" },
  "unbuffer winpty catchsegv": {},
  coproc: {},
};

const wrappers = byName(table);

export function wrapperOf(name: string): Wrapper | undefined {
  return wrappers.get(name);
}
