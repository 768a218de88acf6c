import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { expect, test } from "vitest";
import { commandPlace } from "../support/command-place.ts";
import { Dice } from "../support/dice.ts";
import { timeStepMs } from "../../src/workspace/changes/file-state.ts";
import { tries } from "../support/run-length.ts";

const project = {
  "README.md": "# Sample\n\nA small project.\n",
  "package.json": '{\n  "name": "sample",\n  "version": "1.0.0"\n}\n',
  "src/a.js": "const one = 1;\nexport { one };\n",
  "src/b.js": "import { one } from './a.js';\nconsole.log(one);\n",
  "src/lib/deep.js": "export const deep = true;\n",
  "src/data file.txt": "name with a blank\n",
  "test/a.test.js": "import '../src/a.js';\n",
  "scripts/build.sh": "#!/bin/sh\nmkdir -p out && cat src/*.js > out/all.js && date +%N > out/stamp\n",
  "bytes.bin": new Uint8Array([0, 1, 2, 255, 254, 0]),
  ".gitignore": "ignored/\n*.log\n",
  "ignored/cache": "not tracked\n",
};

const file = [
  "README.md",
  "package.json",
  "src/a.js",
  "src/b.js",
  "src/lib/deep.js",
  "notes.txt",
  "bytes.bin",
] as const;
const folder = ["src", "src/lib", "test", "scripts", "made"] as const;

/** Builds one command line over the sample project. */
function commandLine(dice: Dice): string {
  const f = dice.oneOf(file);
  const g = dice.oneOf(file);
  const d = dice.oneOf(folder);
  const n = `made/n${dice.below(5)}.txt`;
  const word = `word${dice.below(1000)}`;
  return dice.oneOf([
    `sed -i 's/one/${word}/g' ${f}`,
    `sed -i.bak '1d' ${f}`,
    `mv ${f} ${dice.oneOf(["moved.txt", "src/moved.js", n])}`,
    `mkdir -p made && mv ${f} ${n}`,
    `mv ${d} renamed-${dice.below(3)}`,
    `cp ${f} copy-${dice.below(3)}.txt`,
    `cp -r ${d} ${dice.oneOf(["backup", "src/backup"])}`,
    `rm ${f}`,
    `rm -rf ${d}`,
    `rm -f ${f} && mkdir ${f} && echo ${word} > ${f}/inside`,
    `rm -rf ${d} && echo ${word} > ${d}`,
    `touch ${f}`,
    `touch -r ${g} ${f}`,
    `tar -cf made.tar ${d} && rm -rf ${d} && tar -xf made.tar`,
    `tar -czf archive.tgz src test`,
    `printf '${word}' >> ${f}`,
    `echo ${word} > ${f}`,
    `echo ${word} | tee ${f} copy.txt`,
    `: > ${f}`,
    `truncate -s 3 ${f}`,
    `truncate -s +100 ${f}`,
    `chmod +x ${f}`,
    `chmod -x scripts/build.sh`,
    `ln -s ${f} link-${dice.below(3)}`,
    `ln -sf ../README.md src/b.js`,
    `ln ${f} hard-${dice.below(3)}`,
    `rm ${f}; ln -s ${g} ${f}`,
    `find . -name '*.js' -not -path './.git/*' -delete`,
    `find src -type f -exec sed -i 's/const/let/' {} +`,
    `find ${d} -type f | xargs -r -d '\\n' rm`,
    `mkdir -p made/deep/er && echo ${word} > made/deep/er/file`,
    `sh scripts/build.sh`,
    `python3 -c "open('${f}','a').write('${word}')"`,
    `python3 -c "import os; [os.rename(x, x + '.old') for x in ['${f}'] if os.path.isfile(x)]"`,
    `node -e "require('fs').writeFileSync('${f}', '${word}')"`,
    `node -e "const fs=require('fs');for(const n of fs.readdirSync('.'))if(n.endsWith('.md'))fs.appendFileSync(n,'${word}')"`,
    `for x in src/*.js; do tr a-z A-Z < $x > $x.tmp && mv $x.tmp $x; done`,
    `awk '{print NR ": " $0}' ${f} > numbered && mv numbered ${f}`,
    `sort -o ${f} ${f}`,
    `printf -- '--- a/README.md\\n+++ b/README.md\\n@@ -1,3 +1,3 @@\\n-# Sample\\n+# ${word}\\n \\n A small project.\\n' | git apply`,
    `printf -- '--- README.md\\n+++ README.md\\n@@ -1,3 +1,3 @@\\n-# Sample\\n+# ${word}\\n \\n A small project.\\n' | patch -p0`,
    `git checkout -- .`,
    `git checkout -q -b branch-${word} && echo ${word} > src/a.js && git commit -qam x && git checkout -q -`,
    `git mv ${f} git-moved-${dice.below(3)}`,
    `git rm -q --cached ${f}`,
    `git rm -qf ${f}`,
    `git add -A && git commit -qm ${word}`,
    `git stash -q -u`,
    `git reset -q --hard`,
    `git clean -fdq`,
    `git add -A`,
    `echo '*.txt' >> .gitignore`,
    `rm .gitignore`,
    `dd if=/dev/zero of=${n} bs=10 count=3 2>/dev/null || mkdir -p made`,
    `split -b 10 README.md part-`,
    `cat README.md >> ${f} && false`,
    `exit 3`,
    `ls -la && git status --short`,
    `gzip -k ${f}`,
    `gzip ${f}`,
    `rename() { mv "$1" "$2"; }; rename "src/data file.txt" "src/data-file.txt"`,
    `cd src && rm -f *.js`,
    `(cd src && echo ${word} > new.js) & wait`,
    `timeout 1 sh -c 'echo ${word} > ${f}; echo done'`,
  ]);
}

/** Commands for which the analysis knows each written file. */
const transparent = /^(?::|cd|chmod|cp|dd|echo|gzip|ln|mkdir|mv|rm|sed|sort|touch|truncate) |^printf '/;

/** Lists the ignored files with a repository elsewhere, so that it works for folders outside git too. */
function listIgnored({ cwd }: Place, gitDir: string): string[] {
  const args = ["--git-dir", gitDir, "--work-tree", "."];
  const options = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard"];
  return execFileSync("git", [...args, ...options], { cwd, encoding: "utf8" }).split("\0");
}

type Place = Awaited<ReturnType<typeof commandPlace>>;

function initialize(place: Place): void {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: place.cwd, stdio: "ignore" });
  git("init", "-q");
  git("add", "-A");
  git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first");
}

/** Edits a file as a user would between two turns. */
function edit(path: string, text: string): void {
  try {
    if (existsSync(path)) appendFileSync(path, text);
  } catch {
    // The path has become a folder.
  }
}

/** Waits until a file is older than a new command, because file system clocks are coarse. */
async function waitForFileClock(): Promise<void> {
  const start = Date.now();
  await expect.poll(() => Date.now() - start, { interval: 2 }).toBeGreaterThan(timeStepMs);
}

const turnsPerPlace = 25;
const linesInFull = 1_000;

test.each(["git", "no git"])(
  "the tree after undo is the tree before, with the user's edits (%s)",
  async (kind) => {
    await using elsewhere = await commandPlace({ a: "" });
    initialize(elsewhere);
    const gitDir = elsewhere.path(".git");
    const wanted = tries(linesInFull) / 2;
    let ran = 0;
    for (let round = 0; ran < wanted; round++) {
      const dice = new Dice(round * 2 + (kind === "git" ? 0 : 1));
      await using place = await commandPlace(project);
      if (kind === "git") initialize(place);
      for (let turn = 0; turn < turnsPerPlace && ran < wanted; turn++) {
        const own = dice.oneOf(file);
        if (dice.below(2) === 0) edit(place.path(own), `edited by the user ${round} ${turn}\n`);
        const lines = Array.from({ length: 1 + dice.below(3) }, () => commandLine(dice));
        ran += lines.length;
        const context = `seed ${round}, turn ${turn}:\n${lines.join("\n")}`;
        // Ignored files are covered only where the line shows that it writes them.
        const isTransparent = lines.every((line) => transparent.test(line));
        const ignored = new Set<string>();
        const findIgnored = () => {
          if (!isTransparent) for (const path of listIgnored(place, gitDir)) ignored.add(path);
        };
        const readTree = () => omit(place.tree(), ignored);
        const start = place.tree();
        findIgnored();
        // Git and `rm .gitignore` may make an ignored file visible; the file must be older than the command.
        if (lines.some((line) => line.includes("git"))) await waitForFileClock();
        const results = [];
        for (const line of lines) {
          results.push(await place.run(line));
          findIgnored();
        }
        const changes = results.flatMap((result) => result.changes ?? []);
        const before = omit(start, ignored);
        const after = readTree();
        // The user's edit of a file that the commands left must survive the undo.
        const edited = changes.findLast((one) => one.after && !one.isLink && existsSync(one.path))?.path;
        const name = place.nameOf(edited ?? "");
        const isEdited = edited !== undefined && dice.below(3) === 0;
        // Different text each time, because an edit that restores older content does not conflict.
        if (isEdited) appendFileSync(edited, `mine ${round} ${turn}\n`);
        const withEdit = place.tree();
        const outcome = await place.undo(changes);
        if (isEdited) {
          expect(place.tree()[name], context).toBe(withEdit[name]);
          // A file that the commands did not change is not touched either.
          if (outcome[name] !== "unchanged") expect(outcome[name], context).toHaveProperty("kept");
          continue;
        }
        expect(readTree(), `${context}\n${JSON.stringify(outcome)}`).toEqual(before);
        if (dice.below(2) === 0) {
          await place.redo(changes);
          expect(readTree(), `redo of ${context}`).toEqual(after);
        }
      }
    }
  },
  600_000,
);

function omit(tree: Record<string, string>, paths: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(Object.entries(tree).filter(([path]) => !paths.has(path)));
}
