import { indexByName } from "./dispatch-by-name.ts";

/**
 * The effects of one program: its files, and the options that run or write something else.
 *
 * Fields that end in `Flags` are lists of options, separated by blanks (`"-o --output"`).
 * - A long option also matches its abbreviations (`--out`), a short one also inside a cluster (`-xo`).
 * - `*` instead of a list means "with or without options"; only the fields that say so accept it.
 *
 * docs/development/shell-analysis.md shows how to add a program.
 */
export interface Program {
  // Options with a value. An option belongs in one of these lists if it takes the next word.

  /** The value may be a path, and is checked for one. */
  readonly valueFlags?: string;
  /** The value is text, and is never a path. */
  readonly textFlags?: string;
  /** The value is a file that is read. */
  readonly inputFileFlags?: string;
  /** The value is a file with the names of files to read. */
  readonly fileListFlags?: string;
  /** The value is a file that is written. */
  readonly outputFileFlags?: string;
  /** The value may name a file to read after `@` or `<` (`curl -d @file`). */
  readonly uploadFlags?: string;
  /** The value is a folder in which files are written. */
  readonly outputDirFlags?: string;

  // Options that change what the program does.

  /** Runs or writes something that the arguments do not show. Makes the command opaque. */
  readonly dangerousFlags?: string;
  /** Variables among the operands (`make SHELL=…`) that have the effect of a dangerous option. */
  readonly dangerousVariables?: string;
  /** Writes nothing (`gzip -l`). */
  readonly readOnlyFlags?: string;
  /** Saves each URL under the last part of its path; `*` is allowed. */
  readonly saveByUrlNameFlags?: string;
  /** Deletes the operands after packing them (`zip -m`). */
  readonly removeSourceFlags?: string;
  /** Backs up files before overwriting them, with a suffix or a number. */
  readonly backupFlags?: string;
  /** Creates links to the sources, through which they can be changed; `*` is allowed. */
  readonly linkFlags?: string;
  /** Treats all operands as folders to create (`install -d`). */
  readonly mkdirFlags?: string;
  /** Writes everything below a folder operand; `*` is allowed. */
  readonly recursiveWriteFlags?: string;
  /** Reads everything below a folder operand; `*` is allowed. */
  readonly recursiveReadFlags?: string;
  /** Follows symbolic links below a folder operand. */
  readonly followLinkFlags?: string;

  // Operands: the words that are neither options nor their values.

  /**
   * The meaning of the operands. Without it, operands that look like paths are read.
   * - `read`, `write`: files.
   * - `change`: files that are read and replaced by a file with another extension (`gzip`).
   * - `pack`: the first is written, the others are read.
   * - `folder`: paths that are listed, not read.
   * - `copy`: the last is written, the others are read. `move`: all are written. `link`: as `copy`, but a single
   *   operand is linked from the working folder.
   * - `address`: URLs. `clone`: a repository and the folder to create.
   * - `name`: names that may be paths, neither read nor written. `text`: never paths.
   */
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
  /** The number of leading operands that are a pattern or a script, not a file. */
  readonly skippedOperands?: number;
  /** Options that supply the pattern or script, so that no operand is skipped (`grep -e`). */
  readonly patternFlags?: string;
  /** The first operand ends the options: the rest belongs to a script or subcommand (`node a.js -x`). */
  readonly stopsAtFirstOperand?: boolean;
  /** Options have long names after a single dash (`go -o`, `openssl -out`). */
  readonly hasSingleDashNames?: boolean;

  // The program as a whole.

  /** Writes files that the arguments do not name, unless an option of `readOnlyFlags` or `outputDirFlags` is given. */
  readonly writesUnnamedFiles?: boolean;
  /** Written operands are deleted. */
  readonly removesFiles?: boolean;
  /** Runs its standard input when it has no operand. */
  readonly runsItsInput?: boolean;
  /** Runs code from its arguments or input. A user's rule for the interpreter (`node *`) may allow that. */
  readonly interpretsCode?: boolean;
  /** Why the effects of the program can never be determined; shown to the user. */
  readonly opaque?: string;
}

export const interactiveReason = "it can run other programs from inside";
const remoteReason = "it runs a command on another machine";
const interpreterReason = "it runs what its script or its input says";
const argumentReason = "it runs what its arguments name";
const schedulerReason = "it runs something later or elsewhere";

const backupFlags = "-b --backup -S --suffix";
const grepValueFlags =
  "-A -B -C -m -D -d --after-context --before-context --context --max-count --binary-files --devices --directories --label";
const searchValueFlags =
  "-A -B -C -m -t -T -g -j -M -E -r --after-context --before-context --context --max-count --type --type-not --glob --iglob --max-depth --max-columns --replace --sort --encoding --threads --colors --color";

/** One record per group of programs; the key lists their names, separated by blanks. */
const table: Record<string, Program> = {
  // Print files
  "cat rev sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum": { operands: "read" },
  "pr ptx tsort ul colrm hd zcat gzcat bzcat xzcat lzcat lz4cat zstdcat bat batcat basenc": {
    operands: "read",
  },
  // Converts encodings; can write its result.
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
  // Delimiters may look like paths (`cut -d /`).
  "cut paste": { operands: "read", textFlags: "-d --delimiter --delimiters --output-delimiter" },
  comm: { operands: "read", textFlags: "--output-delimiter" },
  join: { operands: "read", textFlags: "-t -e" },
  cmp: { operands: "read" },
  // Compares folders recursively.
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
  // Can write its output, and run a program to compress temporary files.
  sort: {
    operands: "read",
    textFlags: "-k -t -S --key --field-separator --buffer-size --parallel --batch-size",
    valueFlags: "-T --temporary-directory",
    dangerousFlags: "-o --output --compress-program",
    outputFileFlags: "-o --output",
    fileListFlags: "--files0-from",
  },
  // A second operand is the output file.
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
  // `-C` compiles a magic file.
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
  // `-R` writes files into the folders, `--fromfile` reads a listing.
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
  // The first operand is the pattern unless an option gives it.
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
  // Searches recursively; `--pre` runs a program for each file.
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
  // Search recursively; the pager is a program.
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
  // The program text is read by programs/scripts.ts.
  "awk gawk mawk nawk": {
    operands: "read",
    textFlags: "-F -v --field-separator --assign",
    dangerousFlags:
      "-e --source -f --file -i --include -l --load -E --exec -o --pretty-print -d --dump-variables -p --profile -D --debug -W",
    skippedOperands: 1,
    patternFlags: "-f --file -E --exec",
  },
  // The script is read by programs/scripts.ts.
  "sed gsed": {
    operands: "read",
    textFlags: "-e --expression -l --line-length",
    dangerousFlags: "-i -I --in-place -f --file",
    skippedOperands: 1,
    patternFlags: "-e --expression -f --file",
  },
  // A second operand is the output file.
  xxd: { operands: "copy", valueFlags: "-l -s -c -g -o -n" },
  // `-x` runs a command, which programs/find.ts reads.
  "fd fdfind": {
    operands: "folder",
    textFlags: "-e -E -g -t -d -c -S --extension --exclude --type --color --size --glob",
    valueFlags: "--search-path --base-directory --ignore-file -C",
    dangerousFlags: "-x -X --exec --exec-batch",
    followLinkFlags: "-L --follow",
    skippedOperands: 1,
  },
  "less more most pg view": { operands: "read", opaque: interactiveReason },
  // Operands are page names; a pager or preprocessor runs.
  "man info": {
    operands: "text",
    dangerousFlags: "-P --pager -H --html -X --gxditview -C --config-file -l --local-file -p --preprocessor",
  },
  // Write, copy, move and pack files
  "tee sponge": { operands: "write" },
  // `-r` reads the time of another file.
  touch: { operands: "write", valueFlags: "-d -t --date --time", inputFileFlags: "-r --reference" },
  mkdir: { operands: "write", textFlags: "-m --mode" },
  rm: { operands: "write", removesFiles: true, recursiveWriteFlags: "-r -R --recursive" },
  unlink: { operands: "write", removesFiles: true },
  "rmdir shred mkfifo mknod": { operands: "write" },
  // The operand is a template, resolved by programs/special-programs.ts.
  mktemp: { operands: "write", outputDirFlags: "-p --tmpdir" },
  fallocate: { operands: "write", valueFlags: "-l --length -o --offset" },
  // Write to `-o`.
  "as ld": { outputFileFlags: "-o" },
  strip: { operands: "write", valueFlags: "-R -K -N", outputFileFlags: "-o" },
  objcopy: { operands: "copy", valueFlags: "-I -O -B -j -R -K -N" },
  // The first operand is the operation.
  ar: { operands: "write", skippedOperands: 1 },
  truncate: { operands: "write", valueFlags: "-s --size", inputFileFlags: "-r --reference" },
  // The first operand is the mode or owner.
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
  // Copies recursively; can run a remote shell.
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
  // Output names are resolved by programs/special-programs.ts.
  split: {
    textFlags:
      "-l -b -n -a -C -t --lines --bytes --number --suffix-length --line-bytes --separator --additional-suffix",
    dangerousFlags: "--filter",
  },
  csplit: { textFlags: "-b -n -f --suffix-format --digits --prefix" },
  // `if=` and `of=` are read by programs/special-programs.ts.
  dd: {},
  // The files to change are named in the patch.
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
  // The files to write are named in the archive.
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
  // Operations and archives are read by programs/tar.ts.
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
  // Prints what it fetches unless an option names a file.
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
  // Saves what it fetches under the last part of the URL.
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
  // Take no files, or print only their arguments
  // `-s` sets the clock.
  date: {
    operands: "text",
    textFlags: "-d --date",
    inputFileFlags: "-f --file -r --reference",
    dangerousFlags: "-s --set",
  },
  "echo printf : true false expr seq sleep pwd whoami id basename dirname uname hostname which whereis type printenv nproc arch tty yes exit return break continue shift":
    { operands: "text" },
  // Reads manifests; can run a credential plugin.
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
  // Configuration can name programs to run.
  hg: { dangerousFlags: "--config --config-file --debugger --pager -e --ssh --remotecmd" },
  // Configuration can name programs to run.
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
  // `-toolexec` and the like run a program.
  go: {
    hasSingleDashNames: true,
    outputFileFlags: "-o",
    dangerousFlags: "-toolexec -exec -vettool -overlay -modfile --toolexec --exec --vettool",
  },
  // Another makefile or shell can run anything; the folder's own makefile is allowed by rules for make.
  "make gmake": {
    dangerousFlags: "--eval -f --file --makefile -E",
    inputFileFlags: "-f --file --makefile",
    valueFlags: "-C -I -j -l -o -W --directory --include-dir",
    dangerousVariables: "SHELL .SHELLFLAGS MAKEFLAGS GNUMAKEFLAGS MAKEFILES",
  },
  // `-wrapper`, `-fplugin` and `-B` run other programs.
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
  // `-v` mounts folders, which are checked as paths.
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
  // SQL can write files and run programs.
  "psql mysql sqlite3 mariadb": {
    dangerousFlags: "-c --command -e --execute -f --file -cmd -init -o --output -L --log-file --pager --tee",
  },
  // Interpreters that run a script file, code from an option or their input
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
  // Always opaque: the effects cannot be read from the arguments
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
  // Remote operands (`host:path`) are ignored.
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

/** Finds a program by its base name, ignoring a version (`python3.12`) and `.exe`. */
export function findProgram(name: string): Program | undefined {
  return (
    programs.get(name) ??
    programs.get(name.replace(/\.exe$/i, "")) ??
    programs.get(name.replace(/-?\d+(?:\.\d+)*$/, ""))
  );
}

/** Programs that run what their arguments name. "Always allow" is never offered for them, nor for shells and wrappers. */
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
