import { execFile } from "node:child_process";
import { hostname } from "node:os";
import { messageOf } from "../../base/errors.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import { quoteWord } from "../../base/text/quote-word.ts";
import type { Finding } from "./finding.ts";

/** Time for the start-up files of a shell. */
const limitMs = 5_000;
/** Characters of what they print. */
const shownLength = 80;

const what = "SSH";
const silence = "case $- in *i*) ;; *) return ;; esac";

/**
 * Gives the command with which an editor on another machine starts this program, and checks that the start-up files of
 * the shell print nothing before it. Returns nothing outside of SSH.
 */
export async function sshFindings(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  const shell = env["SHELL"];
  if (process.platform === "win32" || env["SSH_CONNECTION"] === undefined || !shell) return [];
  const program = [process.execPath, ...process.argv.slice(1, 2), "acp"].map(toWord).join(" ");
  const found = `from other machines: ssh -T ${hostname()} exec ${program}`;
  const { printed, problem } = await startShell(shell, env);
  if (problem !== undefined)
    return [{ what, found, todo: `${shell} -c true failed as ssh runs it: ${problem}` }];
  if (printed === "") return [{ what, found }];
  const todo = `Start-up files of ${shell} print "${excerpt(printed.trim(), shownLength)}", which editors would read as the first message. Print it below this line: ${silence}`;
  return [{ what, found, todo }];
}

const toWord = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : quoteWord(text));

/** Runs the shell as sshd does for a command. */
function startShell(
  shell: string,
  variables: NodeJS.ProcessEnv,
): Promise<{ printed: string; problem: string | undefined }> {
  const { SHLVL: _, ...env } = variables;
  return new Promise((resolve) => {
    const child = execFile(shell, ["-c", "true"], { env, timeout: limitMs }, (error, printed) =>
      resolve({ printed, problem: error === null ? undefined : messageOf(error) }),
    );
    child.stdin?.end();
  });
}
