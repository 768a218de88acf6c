import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { approvalModes } from "../../../src/message/message.ts";
import { judge } from "../../../src/permission/judge.ts";
import { isWithin } from "../../../src/sandbox/profile.ts";
import { tries } from "../../support/run-length.ts";
import { temporaryFolder, type TemporaryFolder } from "../../support/temp.ts";
import { openConfinedLines } from "./confined-lines.ts";
import { compareCalls, createTracer } from "./kernel-calls.ts";
import { findBubblewrapProblem } from "./sandbox-problem.ts";

const problem = (await findBubblewrapProblem()) ?? findTracerProblem();

/** Targets outside that the lines try to write. */
const outside = `/var/tmp/fairlead-evidence-${process.pid}`;

/** The actions of the lines as shell commands; programs in `runners` hide them from the analysis. */
const actions = [
  "cat a.txt",
  "cat .env",
  `cat ${homedir()}/.ssh/id_rsa ${homedir()}/.aws/credentials`,
  "echo x > made.txt",
  "mkdir -p d/e && mv a.txt d/e/ && mv d/e/a.txt . && rm -r d",
  `echo x > ${outside}`,
  `mkdir ${outside}.d`,
  `ln -s ${outside} link; echo x > link; rm -f link`,
  `touch ${homedir()}/.fairlead-evidence`,
  "echo evil > .git/hooks/pre-commit",
  "git config core.pager evil",
  "rm -rf .git/hooks; mv .git .old",
  "echo '{}' > fairlead.json; rm -f fairlead.json",
  "git add -A && git -c user.name=a -c user.email=a@b.c commit -qm x --allow-empty",
  "exec 3<>/dev/tcp/93.184.216.34/80",
  "exec 3<>/dev/tcp/127.0.0.1/1",
  "chmod 777 /etc/hostname",
  "kill -9 1",
  "mktemp -d && echo x > $TMPDIR/y",
];

const runners: readonly ((action: string) => string)[] = [
  (action) => action,
  (action) => `bash -c '${action.replaceAll("'", `'\\''`)}'`,
  (action) => `printf '%s' '${Buffer.from(action).toString("base64")}' | base64 -d | bash`,
  (action) => `X='${action.replaceAll("'", `'\\''`)}'; eval "$X"`,
  (action) => `sh ./${toScript(action)}`,
  (action) => `make -f Makefile.lines ${toScript(action)}`,
  (action) => `find . -maxdepth 1 -name ${toScript(action)} -exec bash {} \\;`,
  (action) => `python3 -c 'import subprocess; subprocess.call(["bash", "${toScript(action)}"])'`,
  (action) => `perl -e 'system("bash ${toScript(action)}")'`,
  (action) => `awk 'BEGIN { system("bash ${toScript(action)}") }'`,
  (action) => `(bash ${toScript(action)} &) ; wait; sleep 0.05`,
];

function toScript(action: string): string {
  return `line-${actions.indexOf(action)}.sh`;
}

const made = [outside, `${outside}.d`, join(homedir(), ".fairlead-evidence")];

const lines = actions.flatMap((action) => runners.map((run) => run(action)));

function findTracerProblem(): string | undefined {
  if (spawnSync("strace", ["-V"]).status === 0) return undefined;
  if (process.platform === "linux" && process.env["FAIRLEAD_REQUIRE_SANDBOX"] === "1")
    throw new Error("FAIRLEAD_REQUIRE_SANDBOX is set, and strace is missing.");
  console.warn("NOT RUN: the evidence of the sandbox needs strace, on Linux.");
  return "no strace";
}

describe.runIf(problem === undefined)("kernel traces of confined command lines", () => {
  let place: Awaited<ReturnType<typeof openConfinedLines>>;
  let traces: TemporaryFolder;
  beforeAll(async () => {
    traces = await temporaryFolder({}, "fairlead-traces-");
    const scripts = actions.map((action) => [toScript(action), `${action}\n`] as const);
    const rules = actions.map((action) => `${toScript(action)}:\n\t@bash ${toScript(action)}\n`);
    place = await openConfinedLines({
      ...Object.fromEntries(scripts),
      "Makefile.lines": `.PHONY: ${scripts.map(([name]) => name).join(" ")}\n${rules.join("")}`,
      "a.txt": "a\n",
    });
    await place.repository.write({ ".env": "SECRET-TEXT\n" });
  });
  afterAll(async () => {
    await place[Symbol.asyncDispose]();
    await traces.remove();
  });

  test("show no write, read or connection outside their profile", { timeout: 300_000 }, async () => {
    expect(lines.length).toBeGreaterThanOrEqual(200);
    const config = await readFile(join(place.root, ".git/config"), "utf8");
    const run = pick(lines, tries(lines.length));
    const violations: string[] = [];
    const counts = { lines: run.length, calls: 0, wrongVerdicts: 0, violationsOfNothing: 0 };
    const unasked = Object.fromEntries(approvalModes.map((mode) => [mode, 0]));
    for (const [index, line] of run.entries()) {
      const requests = await place.analyze(line);
      const judged = (mode: (typeof approvalModes)[number]) =>
        requests.every((request) => judge(request, { rules: place.rules, mode }).action === "allow");
      const allowing = approvalModes.filter(judged);
      for (const mode of allowing) unasked[mode] = (unasked[mode] ?? 0) + 1;
      // A line that asks at each level runs here with no named permissions.
      const folder = join(traces.path, String(index));
      await mkdir(folder);
      const allowed = allowing.length > 0 ? requests : [];
      const { output, profile } = await place.run(line, allowed, createTracer(folder));
      const seen = compareCalls(folder, profile, place.root);
      counts.calls += seen.count;
      const nothing = { ...profile, writable: [], temporary: "/nowhere", hidden: [place.root] };
      counts.violationsOfNothing += compareCalls(folder, nothing, place.root).violations.length;
      violations.push(...seen.violations.map((call) => `${line}: ${call}`));
      if (output.includes("SECRET-TEXT") && !profile.hidden.every((path) => !path.endsWith(".env")))
        violations.push(`${line}: printed what is hidden`);
      if (allowing.includes("sandboxed") && seen.refused.length > 0) counts.wrongVerdicts++;
      for (const path of made.filter((one) => existsSync(one))) {
        const isAllowed = profile.writable.some((one) => isWithin(path, one));
        if (!isAllowed) violations.push(`${line}: made ${path}`);
        await rm(path, { recursive: true });
      }
      await rm(folder, { recursive: true });
    }
    console.info(
      `${counts.lines} lines, ${counts.calls} calls; without a question: ${JSON.stringify(unasked)}; ` +
        `allowed at Sandboxed, and refused in part by the kernel: ${counts.wrongVerdicts}`,
    );
    expect(violations).toEqual([]);
    // The comparison detects violations.
    expect(counts.violationsOfNothing).toBeGreaterThan(counts.lines);
    expect(counts.wrongVerdicts).toBeGreaterThan(0);
    expect(existsSync(join(place.root, ".git/hooks/pre-commit"))).toBe(false);
    expect(await readFile(join(place.root, ".git/config"), "utf8")).toBe(config);
  });
});

/** Returns this number of entries, evenly spread. */
function pick<T>(all: readonly T[], count: number): T[] {
  return all.filter(
    (_, index) => Math.floor((index * count) / all.length) !== Math.floor(((index - 1) * count) / all.length),
  );
}
