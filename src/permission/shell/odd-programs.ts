import type { Doubt } from "./doubt.ts";
import { readOptions } from "./options.ts";
import type { Invocation } from "./part.ts";
import { addPath } from "./paths.ts";
import { describeProgram } from "./program.ts";
import { programOf } from "./program-table.ts";
import type { Argument } from "./word.ts";

/** Its operands are `if=a of=b`. */
export function describeDd({ scan, args, place }: Invocation): undefined {
  for (const arg of args) {
    const [, key, file] = /^(if|of)=(.*)$/s.exec(arg.text) ?? [];
    if (!key || file === undefined) continue;
    const values = arg.values?.map((value) => ({ ...value, text: value.text.slice(3) }));
    addPath(scan, { ...arg, text: file, values }, { access: key === "of" ? "edit" : "read" }, place);
  }
}

/** `--arg name text` takes two words; the second of `--slurpfile name file` is read. */
export function describeJq(invocation: Invocation): Doubt | undefined {
  const { scan, args, place } = invocation;
  const rest: Argument[] = [];
  for (let next = 0; next < args.length; next++) {
    const arg = args[next];
    if (!arg) break;
    const file = args[next + 2];
    if (/^--(?:slurpfile|rawfile|argfile)$/.test(arg.text) && file)
      addPath(scan, file, { access: "read" }, place);
    if (/^--(?:slurpfile|rawfile|argfile|arg|argjson)$/.test(arg.text)) next += 2;
    else rest.push(arg);
  }
  return describeProgram({ ...invocation, args: rest }, programOf("jq"));
}

/** Only its copying names files; other words are often names with a slash. */
export function describeAws(invocation: Invocation): Doubt | undefined {
  const copies = invocation.args[0]?.text === "s3";
  return describeProgram(invocation, copies ? undefined : programOf("gcloud"));
}

/** A word that is no format sets the clock. */
export function describeDate(invocation: Invocation): Doubt | undefined {
  const program = programOf("date") ?? {};
  const doubt = describeProgram(invocation, program);
  const setsClock = readOptions(invocation.args, program).operands.some(({ text }) => /^\d/.test(text));
  return doubt ?? (setsClock ? { reason: "it sets the clock" } : undefined);
}
