import { indexByName } from "./dispatch-by-name.ts";

/**
 * What is known of programs: which of their words are files, and through which options they run or write something
 * that is not named otherwise. Options are lists with blanks between. A long one counts where it is shortened too,
 * a short one inside a cluster (`-xi`).
 */
export interface Program {
  /** Options that take the next word. */
  readonly valueFlags?: string;
  /** Options that take the next word as a text in which no path is looked for. */
  readonly textFlags?: string;
  /** Options that run or write something else. */
  readonly dangerousFlags?: string;
  /** Options whose value is a file that is read, or written. */
  readonly inputFileFlags?: string;
  /** Options whose value is a file that names files which are read. */
  readonly fileListFlags?: string;
  readonly outputFileFlags?: string;
  /** Options whose value names a file behind `@` or `<`. */
  readonly uploadFlags?: string;
  /** Options whose value is a folder in which files are written: the sources' names, or such that are not named. */
  readonly outputDirFlags?: string;
  /** Options with which it writes a file with the last name of each address; `*` for always. */
  readonly saveByUrlNameFlags?: string;
  /** It writes files that its arguments do not name, unless one of the options `looks` or `fills` is there. */
  readonly writesUnnamedFiles?: boolean;
  /** Options with which it writes nothing. */
  readonly readOnlyFlags?: string;
  /** Options with which it removes what it packed. */
  readonly removeSourceFlags?: string;
  /** Options with which it keeps what a file was under a longer name. */
  readonly backupFlags?: string;
  /** Options with which it gives its sources further names, by which they can be changed; `*` for always. */
  readonly linkFlags?: string;
  /** Options with which its operands are folders to make. */
  readonly mkdirFlags?: string;
  /** Variables among its operands (`SHELL=…`) through which it runs something else. */
  readonly dangerousVariables?: string;
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
  readonly skippedOperands?: number;
  readonly patternFlags?: string;
  /** Options with which it reaches everything below a folder; `*` for always. */
  readonly recursiveWriteFlags?: string;
  /** Options with which it reads everything below a folder; `*` for always. */
  readonly recursiveReadFlags?: string;
  /** Options with which it goes on where the links lead that lie below a folder. */
  readonly followLinkFlags?: string;
  /** What it writes is gone afterwards. */
  readonly removesFiles?: boolean;
  /** Options are whole words behind one dash (`-delete`). */
  readonly hasSingleDashNames?: boolean;
  /** Why it can never be known what it does. */
  readonly opaque?: string;
  /** Without an operand it runs what comes from its input. */
  readonly runsItsInput?: boolean;
  /** It runs code that its arguments or its input give. */
  readonly interpretsCode?: boolean;
  /** Everything is an option's value or text up to the first operand, which names a program of its own. */
  readonly stopsAtFirstOperand?: boolean;
}

export const interactiveReason = "it can run other programs from inside";
const remoteReason = "it runs a command on another machine";
const interpreterReason = "it runs what its script or its input says";
const argumentReason = "it runs what stands in its arguments";
const schedulerReason = "it runs something later or elsewhere";

const backupFlags = "-b --backup -S --suffix";
const grepValueFlags =
  "-A -B -C -m -D -d --after-context --before-context --context --max-count --binary-files --devices --directories --label";
const searchValueFlags =
  "-A -B -C -m -t -T -g -j -M -E -r --after-context --before-context --context --max-count --type --type-not --glob --iglob --max-depth --max-columns --replace --sort --encoding --threads --colors --color";

/** By name; several names share an entry with blanks between. */
const table: Record<string, Program> = {
  // Readers
  "cat rev sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum": { operands: "read" },
  "pr ptx tsort ul colrm hd zcat gzcat bzcat xzcat lzcat lz4cat zstdcat bat batcat basenc": {
    operands: "read",
  },
  iconv: { operands: "read", textFlags: "-f -t --from-code --to-code", outputFileFlags: "-o --output" },
  look: { operands: "read", skippedOperands: 1 },
  tac: { operands: "read", textFlags: "-s --separator" },
  "fold fmt expand unexpand strings od cksum shasum md5": { operands: "read", textFlags: "-p --prefix" },
  nl: { operands: "read", textFlags: "-b -d -f -h -i -l -n -s -v -w" },
  hexdump: { operands: "read", textFlags: "-e", inputFileFlags: "-f" },
  "base64 base32": {
    operands: "read",
    inputFileFlags: "-i --input",
    outputFileFlags: "-o --output",
    dangerousFlags: "-o --output",
  },
  "head tail": { operands: "read", valueFlags: "-n -c --lines --bytes --pid -s --sleep-interval" },
  wc: { operands: "read", fileListFlags: "--files0-from" },
  "cut paste": { operands: "read", textFlags: "-d --delimiter --delimiters --output-delimiter" },
  comm: { operands: "read", textFlags: "--output-delimiter" },
  join: { operands: "read", textFlags: "-t -e" },
  cmp: { operands: "read" },
  "diff diff3 colordiff": {
    operands: "read",
    textFlags: "-x -I -L -F --exclude --label --ignore-matching-lines --show-function-line",
    dangerousFlags: "--output --to-file --from-file --diff-program",
    recursiveReadFlags: "*",
    followLinkFlags: "-r --recursive",
  },
  sdiff: {
    operands: "read",
    textFlags: "-I",
    outputFileFlags: "-o --output",
    dangerousFlags: "-o --output --diff-program",
    recursiveReadFlags: "*",
  },
  sort: {
    operands: "read",
    textFlags: "-k -t -S --key --field-separator --buffer-size --parallel --batch-size",
    valueFlags: "-T --temporary-directory",
    dangerousFlags: "-o --output --compress-program",
    outputFileFlags: "-o --output",
    fileListFlags: "--files0-from",
  },
  uniq: { operands: "copy", valueFlags: "-f -s -w --skip-fields --skip-chars --check-chars" },
  shuf: {
    operands: "read",
    valueFlags: "-n -i --head-count --input-range",
    dangerousFlags: "-o --output",
    outputFileFlags: "-o --output",
    inputFileFlags: "--random-source",
  },
  tr: { operands: "text" },
  column: { operands: "read", textFlags: "-s -o -N -H -R --separator --output-separator --table-columns" },
  file: {
    operands: "read",
    textFlags: "-F -P -e --separator --exclude",
    dangerousFlags: "-C --compile -m --magic-file",
    fileListFlags: "-f --files-from",
  },
  stat: { operands: "folder", textFlags: "-c --format --printf" },
  "ls lsd exa eza": {
    operands: "folder",
    textFlags: "-I --ignore --hide --ignore-glob --time-style",
    followLinkFlags: "-L --dereference",
  },
  du: {
    operands: "folder",
    textFlags: "-I --exclude",
    inputFileFlags: "-X --exclude-from",
    fileListFlags: "--files0-from",
    followLinkFlags: "-L --dereference",
  },
  "readlink realpath": { operands: "folder" },
  tree: {
    operands: "folder",
    textFlags: "-P -I -L --filelimit --charset --timefmt",
    dangerousFlags: "-o --output -R --fromfile --fromtabfile",
    inputFileFlags: "--gitfile --infofile",
    followLinkFlags: "-l",
    outputFileFlags: "-o",
  },
  "cd pushd": { operands: "folder" },
  "test [": { operands: "name" },
  "grep egrep fgrep zgrep": {
    operands: "read",
    textFlags: "-e --regexp --include --exclude --exclude-dir",
    valueFlags: grepValueFlags,
    inputFileFlags: "-f --file --exclude-from",
    skippedOperands: 1,
    patternFlags: "-e --regexp -f --file",
    recursiveReadFlags: "-r -R --recursive --dereference-recursive -d --directories",
    followLinkFlags: "-R --dereference-recursive",
  },
  rg: {
    operands: "read",
    textFlags: "-e --regexp",
    valueFlags: searchValueFlags,
    inputFileFlags: "-f --file --ignore-file",
    dangerousFlags: "--pre --hostname-bin -z --search-zip",
    recursiveReadFlags: "*",
    followLinkFlags: "-L --follow",
    skippedOperands: 1,
    patternFlags: "-e --regexp -f --file --files --type-list",
  },
  "ag ack": {
    operands: "read",
    valueFlags: "-A -B -C -m -G --ignore --ignore-dir --depth",
    dangerousFlags: "--pager --pre --output",
    recursiveReadFlags: "*",
    followLinkFlags: "-f --follow",
    skippedOperands: 1,
  },
  jq: {
    operands: "read",
    textFlags: "--indent",
    valueFlags: "-L --library-path",
    inputFileFlags: "-f --from-file",
    skippedOperands: 1,
    patternFlags: "-f --from-file",
  },
  yq: { operands: "read", dangerousFlags: "-i --inplace -s --split-exp", skippedOperands: 1 },
  "awk gawk mawk nawk": {
    operands: "read",
    textFlags: "-F -v --field-separator --assign",
    dangerousFlags:
      "-e --source -f --file -i --include -l --load -E --exec -o --pretty-print -d --dump-variables -p --profile -D --debug -W",
    skippedOperands: 1,
    patternFlags: "-f --file -E --exec",
  },
  "sed gsed": {
    operands: "read",
    textFlags: "-e --expression -l --line-length",
    dangerousFlags: "-i -I --in-place -f --file",
    skippedOperands: 1,
    patternFlags: "-e --expression -f --file",
  },
  xxd: { operands: "copy", valueFlags: "-l -s -c -g -o -n" },
  "fd fdfind": {
    operands: "folder",
    textFlags: "-e -E -g -t -d -c -S --extension --exclude --type --color --size --glob",
    valueFlags: "--search-path --base-directory --ignore-file -C",
    dangerousFlags: "-x -X --exec --exec-batch",
    followLinkFlags: "-L --follow",
    skippedOperands: 1,
  },
  "less more most pg view": { operands: "read", opaque: interactiveReason },
  "man info": {
    operands: "text",
    dangerousFlags: "-P --pager -H --html -X --gxditview -C --config-file -l --local-file -p --preprocessor",
  },
  // Writers
  "tee sponge": { operands: "write" },
  touch: { operands: "write", valueFlags: "-d -t --date --time", inputFileFlags: "-r --reference" },
  mkdir: { operands: "write", textFlags: "-m --mode" },
  rm: { operands: "write", removesFiles: true, recursiveWriteFlags: "-r -R --recursive" },
  unlink: { operands: "write", removesFiles: true },
  "rmdir shred mkfifo mknod": { operands: "write" },
  mktemp: { operands: "write", outputDirFlags: "-p --tmpdir" },
  fallocate: { operands: "write", valueFlags: "-l --length -o --offset" },
  "as ld": { outputFileFlags: "-o" },
  strip: { operands: "write", valueFlags: "-R -K -N", outputFileFlags: "-o" },
  objcopy: { operands: "copy", valueFlags: "-I -O -B -j -R -K -N" },
  ar: { operands: "write", skippedOperands: 1 },
  truncate: { operands: "write", valueFlags: "-s --size", inputFileFlags: "-r --reference" },
  "chmod chown chgrp chattr setfacl": {
    operands: "write",
    skippedOperands: 1,
    patternFlags: "--reference",
    inputFileFlags: "--reference",
    followLinkFlags: "-L",
    recursiveWriteFlags: "-R --recursive",
  },
  cp: {
    operands: "copy",
    valueFlags: "-S --suffix",
    backupFlags,
    linkFlags: "-l --link -s --symbolic-link",
    outputDirFlags: "-t --target-directory",
    recursiveWriteFlags: "-r -R -a --recursive --archive",
    recursiveReadFlags: "-r -R -a --recursive --archive",
    followLinkFlags: "-L --dereference",
  },
  mv: {
    operands: "move",
    removesFiles: true,
    valueFlags: "-S --suffix",
    backupFlags,
    outputDirFlags: "-t --target-directory",
    recursiveReadFlags: "*",
    recursiveWriteFlags: "*",
  },
  install: {
    operands: "copy",
    valueFlags: "-m -o -g -S --mode --owner --group --suffix",
    backupFlags,
    mkdirFlags: "-d --directory",
    outputDirFlags: "-t --target-directory",
    dangerousFlags: "--strip-program",
  },
  "ln link": {
    operands: "link",
    linkFlags: "*",
    valueFlags: "-S --suffix",
    backupFlags,
    outputDirFlags: "-t --target-directory",
  },
  rsync: {
    operands: "copy",
    valueFlags: "-f --filter --exclude --include --exclude-from --include-from --bwlimit",
    recursiveReadFlags: "*",
    followLinkFlags: "-L --copy-links -k --copy-dirlinks --copy-unsafe-links",
    dangerousFlags: "-e --rsh --rsync-path --daemon",
    inputFileFlags: "--password-file",
    fileListFlags: "--files-from",
    outputFileFlags: "--log-file --backup-dir --partial-dir",
    recursiveWriteFlags: "*",
  },
  split: {
    textFlags:
      "-l -b -n -a -C -t --lines --bytes --number --suffix-length --line-bytes --separator --additional-suffix",
    dangerousFlags: "--filter",
  },
  csplit: { textFlags: "-b -n -f --suffix-format --digits --prefix" },
  dd: {},
  patch: {
    operands: "write",
    inputFileFlags: "-i --input",
    outputFileFlags: "-o --output -r --reject-file",
    valueFlags: "-p -d -F --strip --directory",
    dangerousFlags: "-o --output -d --directory",
    writesUnnamedFiles: true,
  },
  zip: {
    operands: "pack",
    removeSourceFlags: "-m --move",
    recursiveReadFlags: "-r --recurse-paths -R",
    followLinkFlags: "-r --recurse-paths -R",
    dangerousFlags: "-T -TT --test --unzip-command -O --output-file",
  },
  unzip: {
    operands: "read",
    dangerousFlags: "-d -o",
    outputDirFlags: "-d",
    writesUnnamedFiles: true,
    readOnlyFlags: "-l -t -p -c -v -z -Z",
  },
  "gzip gunzip bzip2 bunzip2 xz unxz zstd lzma unlzma lzip lz4 unlz4 pigz pbzip2 brotli compress uncompress":
    {
      operands: "change",
      recursiveWriteFlags: "-r --recursive",
      textFlags: "-S --suffix",
      readOnlyFlags: "-c --stdout --to-stdout -l --list -t --test",
    },
  "tar bsdtar gtar": {
    operands: "folder",
    valueFlags: "-C --directory",
    followLinkFlags: "-h --dereference",
    textFlags: "--exclude --transform --xform",
    dangerousFlags:
      "--checkpoint-action --to-command -I --use-compress-program --rsh-command --rmt-command -F --info-script --new-volume-script -P --absolute-names",
    inputFileFlags: "-X --exclude-from",
    fileListFlags: "-T --files-from",
    outputFileFlags: "-g --listed-incremental --index-file",
  },
  curl: {
    operands: "address",
    valueFlags: "-X --request -m --max-time --retry --connect-timeout",
    textFlags: "-A --user-agent -e --referer -u --user",
    outputFileFlags:
      "-o --output -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --etag-save --hsts --alt-svc --libcurl",
    outputDirFlags: "--output-dir",
    saveByUrlNameFlags: "-O --remote-name --remote-name-all",
    inputFileFlags: "-b --cookie -K --config -T --upload-file --cacert -E --cert --key --netrc-file",
    uploadFlags:
      "-d --data --data-ascii --data-binary --data-urlencode -F --form --json --url-query -H --header -w --write-out --variable",
    dangerousFlags: "-O --remote-name --remote-name-all -J --remote-header-name -K --config",
  },
  wget: {
    operands: "address",
    textFlags: "--header --user-agent -U",
    valueFlags: "-t -T --tries --timeout",
    outputFileFlags: "-O --output-document -o --output-file -a --append-output",
    outputDirFlags: "-P --directory-prefix",
    saveByUrlNameFlags: "*",
    inputFileFlags: "-i --input-file --post-file --body-file",
    dangerousFlags: "-e --execute --use-askpass --config",
  },
  // Texts only
  date: {
    operands: "text",
    textFlags: "-d --date",
    inputFileFlags: "-f --file -r --reference",
    dangerousFlags: "-s --set",
  },
  "echo printf : true false expr seq sleep pwd whoami id basename dirname uname hostname which whereis type printenv nproc arch tty yes exit return break continue shift":
    { operands: "text" },
  kubectl: {
    operands: "text",
    inputFileFlags: "-f --filename -k --kustomize --kubeconfig",
    dangerousFlags: "--pager --exec-credential --plugin",
  },
  "gh glab gcloud az http https xh redis-cli": {
    operands: "text",
    dangerousFlags: "--pager --exec-credential --plugin",
  },
  // Version control, packages, builds
  hg: { dangerousFlags: "--config --config-file --debugger --pager -e --ssh --remotecmd" },
  svn: { dangerousFlags: "--diff-cmd --diff3-cmd --config-option --editor-cmd --config-dir" },
  "npm pnpm yarn": {
    dangerousFlags: "-c --call --script-shell --node-options --shell-mode --userconfig --globalconfig --git",
    valueFlags: "-w --workspace --filter -F --prefix -C --dir",
  },
  "npx bunx pnpx": {
    dangerousFlags: "-c --call --script-shell --node-options --shell-mode",
    valueFlags: "-p --package",
  },
  "cargo rustc": { dangerousFlags: "--config --linker -C --codegen" },
  go: {
    hasSingleDashNames: true,
    outputFileFlags: "-o",
    dangerousFlags: "-toolexec -exec -vettool -overlay -modfile --toolexec --exec --vettool",
  },
  "make gmake": {
    dangerousFlags: "--eval -f --file --makefile -E",
    inputFileFlags: "-f --file --makefile",
    valueFlags: "-C -I -j -l -o -W --directory --include-dir",
    dangerousVariables: "SHELL .SHELLFLAGS MAKEFLAGS GNUMAKEFLAGS MAKEFILES",
  },
  "gcc g++ cc c++ clang clang++": {
    hasSingleDashNames: true,
    outputFileFlags: "-o",
    dangerousFlags: "-wrapper -fplugin -B -specs --specs -Xlinker",
  },
  "ctags etags": { dangerousFlags: "--options -o --output -f", outputFileFlags: "-o --output -f" },
  "ssh-keygen": { outputFileFlags: "-f", textFlags: "-N -C -P" },
  pandoc: {
    operands: "read",
    outputFileFlags: "-o --output",
    dangerousFlags: "-o --output -F --filter -L --lua-filter --pdf-engine",
    valueFlags: "-f -t --from --to",
  },
  "mvn gradle gradlew mvnw": { dangerousFlags: "-I --init-script -f --file -b --build-file -s --settings" },
  "docker podman nerdctl": {
    textFlags: "-w --workdir -e --env --entrypoint",
    valueFlags: "-v --volume --mount",
    inputFileFlags: "--env-file",
    dangerousFlags: "--privileged",
  },
  openssl: {
    hasSingleDashNames: true,
    dangerousFlags: "-out -engine -provider -config -writerand",
    outputFileFlags: "-out",
    inputFileFlags: "-in -key -cert",
  },
  gpg: { dangerousFlags: "-o --output --exec-path --photo-viewer", outputFileFlags: "-o --output" },
  "psql mysql sqlite3 mariadb": {
    dangerousFlags: "-c --command -e --execute -f --file -cmd -init -o --output -L --log-file --pager --tee",
  },
  // Interpreters: code in an option or from the input
  "python python2 python3 pypy pypy3": {
    dangerousFlags: "-c",
    runsItsInput: true,
    interpretsCode: true,
    stopsAtFirstOperand: true,
    valueFlags: "-W -X",
    textFlags: "-c -m",
    operands: "read",
  },
  "node nodejs tsx": {
    dangerousFlags: "-e --eval -p --print -r --require --import --loader --experimental-loader -pe",
    inputFileFlags: "--env-file --env-file-if-exists",
    runsItsInput: true,
    interpretsCode: true,
    stopsAtFirstOperand: true,
    valueFlags: "-C --conditions -r --require --import --loader --experimental-loader",
    textFlags: "-e --eval -p --print",
    operands: "read",
  },
  "bun deno": {
    dangerousFlags: "-e --eval -p --print -r --preload --import",
    interpretsCode: true,
    stopsAtFirstOperand: true,
  },
  perl: {
    dangerousFlags: "-e -E -i -M -m -x -d",
    runsItsInput: true,
    interpretsCode: true,
    stopsAtFirstOperand: true,
    valueFlags: "-I",
    textFlags: "-e -E",
    operands: "read",
  },
  ruby: {
    dangerousFlags: "-e -i -r -x",
    runsItsInput: true,
    interpretsCode: true,
    stopsAtFirstOperand: true,
    valueFlags: "-I -C",
    textFlags: "-e",
    operands: "read",
  },
  php: {
    dangerousFlags: "-r -R -B -E -d -z",
    runsItsInput: true,
    interpretsCode: true,
    stopsAtFirstOperand: true,
    textFlags: "-r -R -B -E -d",
    operands: "read",
  },
  "lua luajit": {
    dangerousFlags: "-e -l -i",
    runsItsInput: true,
    interpretsCode: true,
    stopsAtFirstOperand: true,
    textFlags: "-e -l",
    operands: "read",
  },
  "Rscript R julia osascript groovy elixir": {
    dangerousFlags: "-e --eval -E --expression -g",
    runsItsInput: true,
    interpretsCode: true,
    stopsAtFirstOperand: true,
  },
  ghc: { dangerousFlags: "-e --interactive --run", interpretsCode: true },
  // Nothing can be said about these
  "tclsh wish guile sbcl clisp ecl racket ocaml utop swipl ghci runghc runhaskell erl escript iex raku rakudo jshell scala amm crystal m4 dc gnuplot octave maxima gap gp sage qjs rhino jjs jsc d8 pry irb ipython":
    { operands: "read", opaque: interpreterReason, interpretsCode: true },
  "perf hyperfine concurrently entr watchexec nodemon firejail bwrap proot doppler aws-vault chamber infisical op teller aa-exec run-parts capsh debugfs ssh-agent sshpass multitime chronic ifne pee mispipe lckdo logsave torify openvt sg sem systemd-cat cgexec fakechroot bear xterm gnome-terminal konsole alacritty kitty asciinema ttyrec pexec setlock softlimit uclampset trickle nsjail timelimit retry detach daemonize daemon nq tsp wine wsl":
    { opaque: argumentReason },
  "vi vim nvim gvim rvim rview vimdiff ex ed emacs emacsclient nano pico joe micro hx kak code subl script": {
    operands: "read",
    valueFlags: "-c -S -u",
    opaque: interactiveReason,
  },
  "gdb lldb screen tmux expect scriptreplay mc ranger fzf": {
    operands: "read",
    opaque: interactiveReason,
  },
  "ssh slogin mosh rsh telnet sftp ftp lftp socat nc ncat netcat": { opaque: remoteReason },
  scp: {
    operands: "copy",
    recursiveReadFlags: "-r",
    followLinkFlags: "-r",
    dangerousFlags: "-S -o -F -D",
    valueFlags: "-i -P -l -c",
  },
  "at batch crontab systemd-run launchctl systemctl service nsenter unshare chroot su ksu run0 runuser newgrp machinectl lxc lxc-attach incus pkexec gksudo start-stop-daemon dtach abduco":
    { opaque: schedulerReason },
  "xdg-open open start": { opaque: "it opens whatever program is set up for the file" },
  "complete compgen compopt": {
    operands: "text",
    textFlags: "-A -G -P -S -X -o",
    dangerousFlags: "-C -F -W",
  },
  enable: { operands: "text", dangerousFlags: "-f" },
  hash: { operands: "text", dangerousFlags: "-p" },
  bind: { operands: "text", dangerousFlags: "-x -f" },
  fc: { operands: "text", dangerousFlags: "-s -e" },
  history: { operands: "text", outputFileFlags: "-w -a", inputFileFlags: "-r -n" },
  "unalias disown suspend ulimit umask shopt dirs popd logout": { operands: "text" },
};

const programs = indexByName(table);

/** What is known of a program by its name without folder; versions (`python3.12`) and `.exe` do not count. */
export function findProgram(name: string): Program | undefined {
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
    findProgram(name)?.runsItsInput === true
  );
}
