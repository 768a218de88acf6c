import { byName } from "./dispatch-by-name.ts";

/**
 * What is known of programs: which of their words are files, and through which options they run or write something
 * that is not named otherwise. Options are lists with blanks between. A long one counts where it is shortened too,
 * a short one inside a cluster (`-xi`).
 */
export interface Program {
  /** Options that take the next word. */
  readonly values?: string;
  /** Options that take the next word as a text in which no path is looked for. */
  readonly texts?: string;
  /** Options that run or write something else. */
  readonly danger?: string;
  /** Options whose value is a file that is read, or written. */
  readonly reads?: string;
  /** Options whose value is a file that names files which are read. */
  readonly lists?: string;
  readonly writes?: string;
  /** Options whose value names a file behind `@` or `<`. */
  readonly uploads?: string;
  /** Options whose value is a folder in which files are written: the sources' names, or such that are not named. */
  readonly fills?: string;
  /** Options with which it writes a file with the last name of each address; `*` for always. */
  readonly saves?: string;
  /** It writes files that its arguments do not name, unless one of the options `looks` or `fills` is there. */
  readonly writesUnseen?: boolean;
  /** Options with which it writes nothing. */
  readonly looks?: string;
  /** Options with which it removes what it packed. */
  readonly takes?: string;
  /** Options with which it keeps what a file was under a longer name. */
  readonly spares?: string;
  /** Options with which it gives its sources further names, by which they can be changed; `*` for always. */
  readonly links?: string;
  /** Options with which its operands are folders to make. */
  readonly makes?: string;
  /** Variables among its operands (`SHELL=…`) through which it runs something else. */
  readonly settings?: string;
  /** What its operands are. `copy`: the last is written, the others read; `move`: all are written. `change`: read and written; `pack`: the first is written, the others read. `address`: URLs. `name`: no more than names. */
  readonly operands?:
    | "read"
    | "write"
    | "change"
    | "pack"
    | "folder"
    | "copy"
    | "move"
    | "link"
    | "text"
    | "address"
    | "clone"
    | "name";
  /** So many first operands are a pattern or a script, unless one of the options `instead` is there. */
  readonly skip?: number;
  readonly instead?: string;
  /** Options with which it reaches everything below a folder; `*` for always. */
  readonly below?: string;
  /** Options with which it reads everything below a folder; `*` for always. */
  readonly searches?: string;
  /** Options with which it goes on where the links lead that lie below a folder. */
  readonly follows?: string;
  /** What it writes is gone afterwards. */
  readonly removes?: boolean;
  /** Options are whole words behind one dash (`-delete`). */
  readonly words?: boolean;
  /** Why it can never be known what it does. */
  readonly opaque?: string;
  /** Without an operand it runs what comes from its input. */
  readonly runsInput?: boolean;
  /** It runs code that its arguments or its input give. */
  readonly interprets?: boolean;
  /** Everything is an option's value or text up to the first operand, which names a program of its own. */
  readonly leads?: boolean;
}

export const interactive = "it can run other programs from inside";
const remote = "it runs a command on another machine";
const interprets = "it runs what its script or its input says";
const runsArguments = "it runs what stands in its arguments";
const schedules = "it runs something later or elsewhere";

const spares = "-b --backup -S --suffix";
const grepValues =
  "-A -B -C -m -D -d --after-context --before-context --context --max-count --binary-files --devices --directories --label";
const searchValues =
  "-A -B -C -m -t -T -g -j -M -E -r --after-context --before-context --context --max-count --type --type-not --glob --iglob --max-depth --max-columns --replace --sort --encoding --threads --colors --color";

/** By name; several names share an entry with blanks between. */
const table: Record<string, Program> = {
  // Readers
  "cat rev sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum": { operands: "read" },
  "pr ptx tsort ul colrm hd zcat gzcat bzcat xzcat lzcat lz4cat zstdcat bat batcat basenc": {
    operands: "read",
  },
  iconv: { operands: "read", texts: "-f -t --from-code --to-code", writes: "-o --output" },
  look: { operands: "read", skip: 1 },
  tac: { operands: "read", texts: "-s --separator" },
  "fold fmt expand unexpand strings od cksum shasum md5": { operands: "read", texts: "-p --prefix" },
  nl: { operands: "read", texts: "-b -d -f -h -i -l -n -s -v -w" },
  hexdump: { operands: "read", texts: "-e", reads: "-f" },
  "base64 base32": { operands: "read", reads: "-i --input", writes: "-o --output", danger: "-o --output" },
  "head tail": { operands: "read", values: "-n -c --lines --bytes --pid -s --sleep-interval" },
  wc: { operands: "read", lists: "--files0-from" },
  "cut paste": { operands: "read", texts: "-d --delimiter --delimiters --output-delimiter" },
  comm: { operands: "read", texts: "--output-delimiter" },
  join: { operands: "read", texts: "-t -e" },
  cmp: { operands: "read" },
  "diff diff3 colordiff": {
    operands: "read",
    texts: "-x -I -L -F --exclude --label --ignore-matching-lines --show-function-line",
    danger: "--output --to-file --from-file --diff-program",
    searches: "*",
    follows: "-r --recursive",
  },
  sdiff: {
    operands: "read",
    texts: "-I",
    writes: "-o --output",
    danger: "-o --output --diff-program",
    searches: "*",
  },
  sort: {
    operands: "read",
    texts: "-k -t -S --key --field-separator --buffer-size --parallel --batch-size",
    values: "-T --temporary-directory",
    danger: "-o --output --compress-program",
    writes: "-o --output",
    lists: "--files0-from",
  },
  uniq: { operands: "copy", values: "-f -s -w --skip-fields --skip-chars --check-chars" },
  shuf: {
    operands: "read",
    values: "-n -i --head-count --input-range",
    danger: "-o --output",
    writes: "-o --output",
    reads: "--random-source",
  },
  tr: { operands: "text" },
  column: { operands: "read", texts: "-s -o -N -H -R --separator --output-separator --table-columns" },
  file: {
    operands: "read",
    texts: "-F -P -e --separator --exclude",
    danger: "-C --compile -m --magic-file",
    lists: "-f --files-from",
  },
  stat: { operands: "folder", texts: "-c --format --printf" },
  "ls lsd exa eza": {
    operands: "folder",
    texts: "-I --ignore --hide --ignore-glob --time-style",
    follows: "-L --dereference",
  },
  du: {
    operands: "folder",
    texts: "-I --exclude",
    reads: "-X --exclude-from",
    lists: "--files0-from",
    follows: "-L --dereference",
  },
  "readlink realpath": { operands: "folder" },
  tree: {
    operands: "folder",
    texts: "-P -I -L --filelimit --charset --timefmt",
    danger: "-o --output -R --fromfile --fromtabfile",
    reads: "--gitfile --infofile",
    follows: "-l",
    writes: "-o",
  },
  "cd pushd": { operands: "folder" },
  "test [": { operands: "name" },
  "grep egrep fgrep zgrep": {
    operands: "read",
    texts: "-e --regexp --include --exclude --exclude-dir",
    values: grepValues,
    reads: "-f --file --exclude-from",
    skip: 1,
    instead: "-e --regexp -f --file",
    searches: "-r -R --recursive --dereference-recursive -d --directories",
    follows: "-R --dereference-recursive",
  },
  rg: {
    operands: "read",
    texts: "-e --regexp",
    values: searchValues,
    reads: "-f --file --ignore-file",
    danger: "--pre --hostname-bin -z --search-zip",
    searches: "*",
    follows: "-L --follow",
    skip: 1,
    instead: "-e --regexp -f --file --files --type-list",
  },
  "ag ack": {
    operands: "read",
    values: "-A -B -C -m -G --ignore --ignore-dir --depth",
    danger: "--pager --pre --output",
    searches: "*",
    follows: "-f --follow",
    skip: 1,
  },
  jq: {
    operands: "read",
    texts: "--indent",
    values: "-L --library-path",
    reads: "-f --from-file",
    skip: 1,
    instead: "-f --from-file",
  },
  yq: { operands: "read", danger: "-i --inplace -s --split-exp", skip: 1 },
  "awk gawk mawk nawk": {
    operands: "read",
    texts: "-F -v --field-separator --assign",
    danger:
      "-e --source -f --file -i --include -l --load -E --exec -o --pretty-print -d --dump-variables -p --profile -D --debug -W",
    skip: 1,
    instead: "-f --file -E --exec",
  },
  "sed gsed": {
    operands: "read",
    texts: "-e --expression -l --line-length",
    danger: "-i -I --in-place -f --file",
    skip: 1,
    instead: "-e --expression -f --file",
  },
  xxd: { operands: "copy", values: "-l -s -c -g -o -n" },
  "fd fdfind": {
    operands: "folder",
    texts: "-e -E -g -t -d -c -S --extension --exclude --type --color --size --glob",
    values: "--search-path --base-directory --ignore-file -C",
    danger: "-x -X --exec --exec-batch",
    follows: "-L --follow",
    skip: 1,
  },
  "less more most pg view": { operands: "read", opaque: interactive },
  "man info": {
    operands: "text",
    danger: "-P --pager -H --html -X --gxditview -C --config-file -l --local-file -p --preprocessor",
  },
  // Writers
  "tee sponge": { operands: "write" },
  touch: { operands: "write", values: "-d -t --date --time", reads: "-r --reference" },
  mkdir: { operands: "write", texts: "-m --mode" },
  rm: { operands: "write", removes: true, below: "-r -R --recursive" },
  unlink: { operands: "write", removes: true },
  "rmdir shred mkfifo mknod": { operands: "write" },
  mktemp: { operands: "write", fills: "-p --tmpdir" },
  fallocate: { operands: "write", values: "-l --length -o --offset" },
  "as ld": { writes: "-o" },
  strip: { operands: "write", values: "-R -K -N", writes: "-o" },
  objcopy: { operands: "copy", values: "-I -O -B -j -R -K -N" },
  ar: { operands: "write", skip: 1 },
  truncate: { operands: "write", values: "-s --size", reads: "-r --reference" },
  "chmod chown chgrp chattr setfacl": {
    operands: "write",
    skip: 1,
    instead: "--reference",
    reads: "--reference",
    follows: "-L",
    below: "-R --recursive",
  },
  cp: {
    operands: "copy",
    values: "-S --suffix",
    spares,
    links: "-l --link -s --symbolic-link",
    fills: "-t --target-directory",
    below: "-r -R -a --recursive --archive",
    searches: "-r -R -a --recursive --archive",
    follows: "-L --dereference",
  },
  mv: {
    operands: "move",
    removes: true,
    values: "-S --suffix",
    spares,
    fills: "-t --target-directory",
    searches: "*",
    below: "*",
  },
  install: {
    operands: "copy",
    values: "-m -o -g -S --mode --owner --group --suffix",
    spares,
    makes: "-d --directory",
    fills: "-t --target-directory",
    danger: "--strip-program",
  },
  "ln link": { operands: "link", links: "*", values: "-S --suffix", spares, fills: "-t --target-directory" },
  rsync: {
    operands: "copy",
    values: "-f --filter --exclude --include --exclude-from --include-from --bwlimit",
    searches: "*",
    follows: "-L --copy-links -k --copy-dirlinks --copy-unsafe-links",
    danger: "-e --rsh --rsync-path --daemon",
    reads: "--password-file",
    lists: "--files-from",
    writes: "--log-file --backup-dir --partial-dir",
    below: "*",
  },
  split: {
    texts:
      "-l -b -n -a -C -t --lines --bytes --number --suffix-length --line-bytes --separator --additional-suffix",
    danger: "--filter",
  },
  csplit: { texts: "-b -n -f --suffix-format --digits --prefix" },
  dd: {},
  patch: {
    operands: "write",
    reads: "-i --input",
    writes: "-o --output -r --reject-file",
    values: "-p -d -F --strip --directory",
    danger: "-o --output -d --directory",
    writesUnseen: true,
  },
  zip: {
    operands: "pack",
    takes: "-m --move",
    searches: "-r --recurse-paths -R",
    follows: "-r --recurse-paths -R",
    danger: "-T -TT --test --unzip-command -O --output-file",
  },
  unzip: {
    operands: "read",
    danger: "-d -o",
    fills: "-d",
    writesUnseen: true,
    looks: "-l -t -p -c -v -z -Z",
  },
  "gzip gunzip bzip2 bunzip2 xz unxz zstd lzma unlzma lzip lz4 unlz4 pigz pbzip2 brotli compress uncompress":
    {
      operands: "change",
      below: "-r --recursive",
      texts: "-S --suffix",
      looks: "-c --stdout --to-stdout -l --list -t --test",
    },
  "tar bsdtar gtar": {
    operands: "folder",
    values: "-C --directory",
    follows: "-h --dereference",
    texts: "--exclude --transform --xform",
    danger:
      "--checkpoint-action --to-command -I --use-compress-program --rsh-command --rmt-command -F --info-script --new-volume-script -P --absolute-names",
    reads: "-X --exclude-from",
    lists: "-T --files-from",
    writes: "-g --listed-incremental --index-file",
  },
  curl: {
    operands: "address",
    values: "-X --request -m --max-time --retry --connect-timeout",
    texts: "-A --user-agent -e --referer -u --user",
    writes:
      "-o --output -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --etag-save --hsts --alt-svc --libcurl",
    fills: "--output-dir",
    saves: "-O --remote-name --remote-name-all",
    reads: "-b --cookie -K --config -T --upload-file --cacert -E --cert --key --netrc-file",
    uploads:
      "-d --data --data-ascii --data-binary --data-urlencode -F --form --json --url-query -H --header -w --write-out --variable",
    danger: "-O --remote-name --remote-name-all -J --remote-header-name -K --config",
  },
  wget: {
    operands: "address",
    texts: "--header --user-agent -U",
    values: "-t -T --tries --timeout",
    writes: "-O --output-document -o --output-file -a --append-output",
    fills: "-P --directory-prefix",
    saves: "*",
    reads: "-i --input-file --post-file --body-file",
    danger: "-e --execute --use-askpass --config",
  },
  // Texts only
  date: { operands: "text", texts: "-d --date", reads: "-f --file -r --reference", danger: "-s --set" },
  "echo printf : true false expr seq sleep pwd whoami id basename dirname uname hostname which whereis type printenv nproc arch tty yes exit return break continue shift":
    { operands: "text" },
  kubectl: {
    operands: "text",
    reads: "-f --filename -k --kustomize --kubeconfig",
    danger: "--pager --exec-credential --plugin",
  },
  "gh glab gcloud az http https xh redis-cli": {
    operands: "text",
    danger: "--pager --exec-credential --plugin",
  },
  // Version control, packages, builds
  hg: { danger: "--config --config-file --debugger --pager -e --ssh --remotecmd" },
  svn: { danger: "--diff-cmd --diff3-cmd --config-option --editor-cmd --config-dir" },
  "npm pnpm yarn": {
    danger: "-c --call --script-shell --node-options --shell-mode --userconfig --globalconfig --git",
    values: "-w --workspace --filter -F --prefix -C --dir",
  },
  "npx bunx pnpx": { danger: "-c --call --script-shell --node-options --shell-mode", values: "-p --package" },
  "cargo rustc": { danger: "--config --linker -C --codegen" },
  go: {
    words: true,
    writes: "-o",
    danger: "-toolexec -exec -vettool -overlay -modfile --toolexec --exec --vettool",
  },
  "make gmake": {
    danger: "--eval -f --file --makefile -E",
    reads: "-f --file --makefile",
    values: "-C -I -j -l -o -W --directory --include-dir",
    settings: "SHELL .SHELLFLAGS MAKEFLAGS GNUMAKEFLAGS MAKEFILES",
  },
  "gcc g++ cc c++ clang clang++": {
    words: true,
    writes: "-o",
    danger: "-wrapper -fplugin -B -specs --specs -Xlinker",
  },
  "ctags etags": { danger: "--options -o --output -f", writes: "-o --output -f" },
  "ssh-keygen": { writes: "-f", texts: "-N -C -P" },
  pandoc: {
    operands: "read",
    writes: "-o --output",
    danger: "-o --output -F --filter -L --lua-filter --pdf-engine",
    values: "-f -t --from --to",
  },
  "mvn gradle gradlew mvnw": { danger: "-I --init-script -f --file -b --build-file -s --settings" },
  "docker podman nerdctl": {
    texts: "-w --workdir -e --env --entrypoint",
    values: "-v --volume --mount",
    reads: "--env-file",
    danger: "--privileged",
  },
  openssl: {
    words: true,
    danger: "-out -engine -provider -config -writerand",
    writes: "-out",
    reads: "-in -key -cert",
  },
  gpg: { danger: "-o --output --exec-path --photo-viewer", writes: "-o --output" },
  "psql mysql sqlite3 mariadb": {
    danger: "-c --command -e --execute -f --file -cmd -init -o --output -L --log-file --pager --tee",
  },
  // Interpreters: code in an option or from the input
  "python python2 python3 pypy pypy3": {
    danger: "-c",
    runsInput: true,
    interprets: true,
    leads: true,
    values: "-W -X",
    texts: "-c -m",
    operands: "read",
  },
  "node nodejs tsx": {
    danger: "-e --eval -p --print -r --require --import --loader --experimental-loader -pe",
    reads: "--env-file --env-file-if-exists",
    runsInput: true,
    interprets: true,
    leads: true,
    values: "-C --conditions -r --require --import --loader --experimental-loader",
    texts: "-e --eval -p --print",
    operands: "read",
  },
  "bun deno": { danger: "-e --eval -p --print -r --preload --import", interprets: true, leads: true },
  perl: {
    danger: "-e -E -i -M -m -x -d",
    runsInput: true,
    interprets: true,
    leads: true,
    values: "-I",
    texts: "-e -E",
    operands: "read",
  },
  ruby: {
    danger: "-e -i -r -x",
    runsInput: true,
    interprets: true,
    leads: true,
    values: "-I -C",
    texts: "-e",
    operands: "read",
  },
  php: {
    danger: "-r -R -B -E -d -z",
    runsInput: true,
    interprets: true,
    leads: true,
    texts: "-r -R -B -E -d",
    operands: "read",
  },
  "lua luajit": {
    danger: "-e -l -i",
    runsInput: true,
    interprets: true,
    leads: true,
    texts: "-e -l",
    operands: "read",
  },
  "Rscript R julia osascript groovy elixir": {
    danger: "-e --eval -E --expression -g",
    runsInput: true,
    interprets: true,
    leads: true,
  },
  ghc: { danger: "-e --interactive --run", interprets: true },
  // Nothing can be said about these
  "tclsh wish guile sbcl clisp ecl racket ocaml utop swipl ghci runghc runhaskell erl escript iex raku rakudo jshell scala amm crystal m4 dc gnuplot octave maxima gap gp sage qjs rhino jjs jsc d8 pry irb ipython":
    { operands: "read", opaque: interprets, interprets: true },
  "perf hyperfine concurrently entr watchexec nodemon firejail bwrap proot doppler aws-vault chamber infisical op teller aa-exec run-parts capsh debugfs ssh-agent sshpass multitime chronic ifne pee mispipe lckdo logsave torify openvt sg sem systemd-cat cgexec fakechroot bear xterm gnome-terminal konsole alacritty kitty asciinema ttyrec pexec setlock softlimit uclampset trickle nsjail timelimit retry detach daemonize daemon nq tsp wine wsl":
    { opaque: runsArguments },
  "vi vim nvim gvim rvim rview vimdiff ex ed emacs emacsclient nano pico joe micro hx kak code subl script": {
    operands: "read",
    values: "-c -S -u",
    opaque: interactive,
  },
  "gdb lldb screen tmux expect scriptreplay mc ranger fzf": {
    operands: "read",
    opaque: interactive,
  },
  "ssh slogin mosh rsh telnet sftp ftp lftp socat nc ncat netcat": { opaque: remote },
  scp: { operands: "copy", searches: "-r", follows: "-r", danger: "-S -o -F -D", values: "-i -P -l -c" },
  "at batch crontab systemd-run launchctl systemctl service nsenter unshare chroot su ksu run0 runuser newgrp machinectl lxc lxc-attach incus pkexec gksudo start-stop-daemon dtach abduco":
    { opaque: schedules },
  "xdg-open open start": { opaque: "it opens whatever program is set up for the file" },
  "complete compgen compopt": { operands: "text", texts: "-A -G -P -S -X -o", danger: "-C -F -W" },
  enable: { operands: "text", danger: "-f" },
  hash: { operands: "text", danger: "-p" },
  bind: { operands: "text", danger: "-x -f" },
  fc: { operands: "text", danger: "-s -e" },
  history: { operands: "text", writes: "-w -a", reads: "-r -n" },
  "unalias disown suspend ulimit umask shopt dirs popd logout": { operands: "text" },
};

const programs = byName(table);

/** What is known of a program by its name without folder; versions (`python3.12`) and `.exe` do not count. */
export function programOf(name: string): Program | undefined {
  return (
    programs.get(name) ??
    programs.get(name.replace(/\.exe$/i, "")) ??
    programs.get(name.replace(/-?\d+(?:\.\d+)*$/, ""))
  );
}

/** Programs that run what their arguments name, beside shells and wrappers: nobody can allow them "always" as such. */
const runners = new Set(
  "npx bunx pnpx uvx pipx ssh python node perl ruby php lua tsx ts-node eval source . trap osascript Rscript julia groovy gdb env-cmd dotenv cross-env direnv nix nix-shell vagrant ansible script su doas hyperfine entr watchexec nodemon concurrently git-shell".split(
    " ",
  ),
);

export function isRunner(name: string): boolean {
  return (
    runners.has(name) ||
    runners.has(name.replace(/-?\d+(?:\.\d+)*$/, "")) ||
    programOf(name)?.runsInput === true
  );
}
