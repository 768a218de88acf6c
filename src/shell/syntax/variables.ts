import type { Scan, ShellAssignment } from "../facts.ts";

/** Variables that make programs load, run or fetch something else. A name that ends in `*` is a prefix. */
const dangerous =
  "LD_* DYLD_* GIT_* BASH_* SSH_* NPM_CONFIG_* npm_config_* YARN_* PIP_* UV_* DOCKER_* PERL5* RUBY* JAVA_* _JAVA_* JDK_* MAVEN_* GRADLE_* CARGO_* RUSTC* RUSTFLAGS RUSTUP_* GO111MODULE GOFLAGS GOROOT GOPROXY GOTOOLCHAIN GOENV GOBIN GOPATH CC CXX LD AR CPP CFLAGS CXXFLAGS LDFLAGS MAKEFLAGS GNUMAKEFLAGS MFLAGS MAKEFILES LESS LESSOPEN LESSCLOSE LESSKEY* LESSEDIT PAGER MANPAGER MANOPT SYSTEMD_PAGER EDITOR VISUAL FCEDIT BROWSER SHELL SHELLOPTS BASHOPTS ENV PATH CDPATH IFS PS0 PS1 PS2 PS4 PROMPT_COMMAND HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_CONFIG_DIRS NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE NODE_EXTRA_CA_CERTS PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONEXECUTABLE PYTHONUSERBASE PYTHONPLATLIBDIR RIPGREP_CONFIG_PATH TAR_OPTIONS TAPE RSH RSYNC_* ZIPOPT UNZIP GREP_OPTIONS AWKPATH AWKLIBPATH TERMINFO TERMCAP GCONV_PATH LOCPATH NLSPATH MALLOC_* GLIBC_TUNABLES OPENSSL_* SSL_CERT_FILE CURL_HOME WGETRC KUBECONFIG AWS_CONFIG_FILE ANSIBLE_* LUA_* LUA_PATH LUA_CPATH PHPRC PHP_INI_SCAN_DIR CLASSPATH ZDOTDIR FPATH HGRCPATH SVN_* GCC_EXEC_PREFIX COMPILER_PATH TMUX INPUTRC EMACS* VIMINIT EXINIT MYVIMRC DENO_* BUN_* ELECTRON_RUN_AS_NODE http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY";

/** Exceptions, which only change output or name the committer. */
const harmless =
  "GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE GIT_MERGE_AUTOEDIT CARGO_TERM_COLOR CARGO_TERM_VERBOSE CARGO_INCREMENTAL CARGO_PROFILE_DEV_DEBUG PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_INPUT DOCKER_BUILDKIT DENO_NO_UPDATE_CHECK ANSIBLE_NOCOLOR";

/** Values with which a pager or an editor does nothing. */
const idlePrograms = new Set(["", "cat", "true", ":"]);
const pagers = new Set([
  "PAGER",
  "GIT_PAGER",
  "MANPAGER",
  "SYSTEMD_PAGER",
  "EDITOR",
  "VISUAL",
  "GIT_EDITOR",
  "GIT_SEQUENCE_EDITOR",
]);

const dangerousNames = new Set(dangerous.split(" ").filter((name) => !name.endsWith("*")));
const dangerousPrefixes = dangerous
  .split(" ")
  .flatMap((name) => (name.endsWith("*") ? [name.slice(0, -1)] : []));
const exceptions = new Set(harmless.split(" "));

/** Variables whose assigned text the shell evaluates as arithmetic. */
const numbers = new Set(["OPTIND", "RANDOM", "SECONDS", "LINENO", "HISTCMD"]);

/** Whether the variable may change what a command does. `value` is undefined if unknown. */
export function isDangerousVariable(name: string, value: string | undefined): boolean {
  if (exceptions.has(name)) return false;
  if (numbers.has(name)) return value === undefined || !/^\d*$/.test(value);
  if (pagers.has(name) && value !== undefined && idlePrograms.has(value)) return false;
  return dangerousNames.has(name) || dangerousPrefixes.some((beginning) => name.startsWith(beginning));
}

/** Adds an assignment that may change what later commands do. */
export function addVariable(scan: Scan, { name, text, value }: ShellAssignment): void {
  if (!isDangerousVariable(name, value)) return;
  const opaque = `the variable ${name} may make what follows do something else`;
  scan.add({ type: "run", text, opaque, reason: `sets ${name}, but ${opaque}`, similar: [] });
}
