import { indexByName } from "./programs/dispatch-by-name.ts";
import type { OpaqueReason } from "./opaque-reason.ts";
import {
  describeAlias,
  describeEval,
  describeShell,
  describeSource,
  describeTrap,
  isShell,
} from "./wrappers/shells.ts";
import {
  describeAws,
  describeChmod,
  describeCsplit,
  describeDate,
  describeDd,
  describeEditor,
  describeInPlace,
  describeJq,
  describeMktemp,
  describeSplit,
  describeSqlite,
} from "./programs/special-programs.ts";
import {
  describeDeclaration,
  describeMapfile,
  describePrintf,
  describeSubscripts,
  describeTest,
} from "./programs/builtins.ts";
import { describeFd, describeFind } from "./programs/find.ts";
import { describeGit } from "./programs/git.ts";
import type { Invocation } from "./facts.ts";
import { addVisiblePaths, isSystemProgram } from "./syntax/paths.ts";
import { describeProgram } from "./programs/program.ts";
import { findProgram } from "./programs/program-table.ts";
import { describeAwk, describeSed } from "./programs/scripts.ts";
import { describeTar } from "./programs/tar.ts";
import { describeWrapper } from "./wrappers/wrappers.ts";
import { findWrapper } from "./wrappers/wrapper-table.ts";

/** Adds the files of a command and the command it wraps. Returns why it is opaque; undefined if it is not. */
export function describe(name: string, invocation: Invocation): OpaqueReason | undefined {
  const { scan, command, evalContext } = invocation;
  const [program] = command.argv;
  if (program && /[/~]/.test(program.text) && !isSystemProgram(program.text))
    addVisiblePaths(scan, program, evalContext);
  const special = specials.get(name);
  if (special) return special(invocation);
  if (isShell(name)) return describeShell(invocation, name);
  const wrapper = findWrapper(name);
  return wrapper ? describeWrapper(invocation, wrapper) : describeProgram(invocation, findProgram(name));
}

type Describe = (invocation: Invocation) => OpaqueReason | undefined;

/** Functions that describe special programs; a key lists several names, separated by blanks. */
const table: Record<string, Describe> = {
  git: describeGit,
  "find gfind": describeFind,
  "fd fdfind": describeFd,
  "tar gtar bsdtar": describeTar,
  "sed gsed": describeSed,
  "awk gawk mawk nawk": describeAwk,
  eval: describeEval,
  trap: describeTrap,
  "source .": describeSource,
  alias: describeAlias,
  "export declare typeset local readonly": describeDeclaration,
  "test [": describeTest,
  "read unset wait let": describeSubscripts,
  printf: describePrintf,
  "mapfile readarray": describeMapfile,
  aws: describeAws,
  chmod: describeChmod,
  csplit: describeCsplit,
  mktemp: describeMktemp,
  split: describeSplit,
  "sqlite3 sqlite": describeSqlite,
  date: describeDate,
  dd: describeDd,
  jq: describeJq,
  "perl ruby": describeInPlace,
  "vi vim nvim gvim rvim rview vimdiff ex ed emacs emacsclient nano pico joe micro hx kak code subl script":
    describeEditor,
};

const specials = indexByName(table);
