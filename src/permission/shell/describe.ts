import { byName } from "./by-name.ts";
import type { Doubt } from "./doubt.ts";
import {
  describeAlias,
  describeEval,
  describeShell,
  describeSource,
  describeTrap,
  isShell,
} from "./shells.ts";
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
} from "./odd-programs.ts";
import {
  describeDeclaration,
  describeMapfile,
  describePrintf,
  describeSubscripts,
  describeTest,
} from "./builtins.ts";
import { describeFd, describeFind } from "./find.ts";
import { describeGit } from "./git.ts";
import type { Invocation } from "./part.ts";
import { addVisiblePaths, isSystemProgram } from "./paths.ts";
import { describeProgram } from "./program.ts";
import { programOf } from "./program-table.ts";
import { describeAwk, describeSed } from "./scripts.ts";
import { describeTar } from "./tar.ts";
import { describeWrapper } from "./wrappers.ts";
import { wrapperOf } from "./wrapper-table.ts";

/** Adds the files of a command and what it wraps; says why it is opaque, if it is. */
export function describe(name: string, invocation: Invocation): Doubt | undefined {
  const { scan, command, place } = invocation;
  const [program] = command.argv;
  if (program && /[/~]/.test(program.text) && !isSystemProgram(program.text))
    addVisiblePaths(scan, program, place);
  const special = specials.get(name);
  if (special) return special(invocation);
  if (isShell(name)) return describeShell(invocation);
  const wrapper = wrapperOf(name);
  return wrapper ? describeWrapper(invocation, wrapper) : describeProgram(invocation, programOf(name));
}

type Describe = (invocation: Invocation) => Doubt | undefined;

/** By name; several names share an entry with blanks between. */
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

const specials = byName(table);
