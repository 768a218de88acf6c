import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { execa } from "execa";
import { openConfinedLines } from "./confined-lines.ts";
import { findBubblewrapProblem } from "./sandbox-problem.ts";

const problem = await findBubblewrapProblem();

/**
 * Everyday commands with the program that they need, in order: later ones use the results of earlier ones.
 */
const commands: readonly (readonly [program: string, line: string])[] = [
  ["git", "git status --short && git log --oneline -n 3 && git blame sum.js"],
  ["git", "echo '// more' >> sum.js && git diff --stat && git add -A && git commit -qm 'Change sum'"],
  ["git", "git switch -qc topic && echo topic > topic.txt && git add . && git commit -qm topic"],
  ["git", "git switch -q - && git merge -q --no-edit topic && git branch -d topic"],
  ["git", "echo draft > draft.txt && git stash -uq && git stash pop -q && rm draft.txt"],
  ["git", "git switch -qc base HEAD~1 && echo b > b.txt && git add . && git commit -qm b && git rebase -q -"],
  ["git", "git tag v1 && git describe --tags && git show --stat v1"],
  ["git", "git worktree add -q tree HEAD && git -C tree status --short && git worktree remove tree"],
  ["git", "git format-patch -q -1 -o patches && git reset -q --hard HEAD~1 && git am -q patches/*.patch"],
  ["git", "git archive -o a.tar HEAD && git gc -q && git fsck && rm -r a.tar patches"],
  ["git", "git bisect start HEAD HEAD~1 && git bisect log && git bisect reset"],
  ["npm", "npm test"],
  ["npm", "npm run build --silent && node dist/sum.js"],
  ["npm", "npm ls --all && npm pkg get name && npm version --no-git-tag-version patch"],
  ["npm", "npm pack --silent && rm *.tgz"],
  ["node", "node --test test.js"],
  [
    "node",
    `node -e 'const s = require("http").createServer((q, r) => r.end("hi")).listen(0, async () => { console.log(await (await fetch("http://127.0.0.1:" + s.address().port)).text()); s.close(); })'`,
  ],
  ["node", "node --cpu-prof --cpu-prof-dir=/tmp/profile sum.js && ls /tmp/profile"],
  ["python3", "python3 -m venv venv && venv/bin/python -c 'import sys; print(sys.prefix)'"],
  ["python3", "python3 -m unittest -q test_sum.py && python3 -m py_compile test_sum.py"],
  [
    "python3",
    "python3 -c 'import tempfile, multiprocessing as m; print(tempfile.mkdtemp(), m.Pool(2).map(abs, [-1, 2]))'",
  ],
  ["pip", "pip list && pip --version"],
  ["pytest", "pytest -q test_sum.py"],
  ["make", "make all && make -j2 clean && make -n"],
  ["gcc", "gcc -O1 -o sum sum.c && ./sum"],
  ["g++", "g++ -std=c++17 -c sum.cc -o sum.o && ar rcs libsum.a sum.o"],
  ["cmake", "cmake -S . -B build && cmake --build build && ./build/sum"],
  [
    "cargo",
    "cargo new -q --vcs none first && cd first && cargo build -q --offline && cargo test -q --offline",
  ],
  ["rustc", "rustc --edition 2021 -o hello hello.rs && ./hello"],
  [
    "go",
    "mkdir -p g && cd g && go mod init example.org/g && echo 'package g' > g.go && go build ./... && go vet ./...",
  ],
  ["javac", "javac Sum.java && java Sum"],
  ["mvn", "mvn --offline --version"],
  ["perl", "perl -i -pe 's/one/two/' words.txt && perl -ne 'print if /two/' words.txt"],
  ["sed", "sed -i 's/two/three/' words.txt && awk '{ print NF }' words.txt && sort words.txt | uniq -c"],
  ["jq", "jq .name package.json"],
  ["tar", "tar czf a.tgz *.js && mkdir out && tar xzf a.tgz -C out && rm -r a.tgz out"],
  ["zip", "zip -q a.zip sum.js && unzip -l a.zip && rm a.zip"],
  [
    "patch",
    "cp words.txt w.txt; echo more >> w.txt; diff -u words.txt w.txt > w.patch; patch -s words.txt w.patch",
  ],
  ["find", "find . -name '*.js' -not -path './.git/*' -print0 | xargs -0 grep -c return"],
  ["sqlite3", "sqlite3 t.db 'create table t (a); insert into t values (1); select * from t;'"],
  ["bash", "mkfifo /tmp/pipe && (echo through > /tmp/pipe &) && cat /tmp/pipe && rm /tmp/pipe"],
  ["bash", "(sleep 0.05; echo late) & wait; trap 'echo trapped' TERM; kill -TERM $$"],
  ["bash", "date; uname -a; df -h . ; ps; id; env | sort | head -n 3; nproc; ulimit -a; mktemp -d"],
];

const files = {
  "package.json": JSON.stringify({
    name: "sum",
    version: "1.0.0",
    scripts: { test: "node --test test.js", build: "mkdir -p dist && cp sum.js dist/sum.js" },
  }),
  "sum.js": "function sum(a, b) {\n  return a + b;\n}\nmodule.exports = { sum };\nconsole.log(sum(1, 2));\n",
  "test.js":
    'require("node:test")("sum", () => require("assert").equal(require("./sum.js").sum(1, 2), 3));\n',
  "test_sum.py":
    "import unittest\nclass T(unittest.TestCase):\n  def test_sum(self):\n    self.assertEqual(1 + 2, 3)\n",
  Makefile: "all: out.txt\nout.txt: words.txt\n\tcp words.txt out.txt\nclean:\n\trm -f out.txt\n",
  "words.txt": "one\ntwo words\n",
  "sum.c": '#include <stdio.h>\nint main(void) { printf("%d\\n", 1 + 2); return 0; }\n',
  "sum.cc": "int sum(int a, int b) { return a + b; }\n",
  "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(sum C)\nadd_executable(sum sum.c)\n",
  "hello.rs": 'fn main() { println!("hello"); }\n',
  "Sum.java": "class Sum { public static void main(String[] a) { System.out.println(1 + 2); } }\n",
  ".gitignore": "dist\nvenv\nbuild\nfirst\n__pycache__\n",
};

describe.runIf(problem === undefined)("an everyday command works in the sandbox", () => {
  let place: Awaited<ReturnType<typeof openConfinedLines>>;
  const absent = new Set<string>();
  beforeAll(async () => {
    place = await openConfinedLines(files);
    // A second commit, for commands that need two.
    await place.repository.write({ "notes.txt": "a\n" });
    await place.repository.git("add", "-A");
    await place.repository.git("commit", "-qm", "Add notes");
  });
  afterAll(async () => {
    if (absent.size > 0) console.warn(`NOT RUN, as the programs are absent: ${[...absent].join(", ")}`);
    await place[Symbol.asyncDispose]();
  });

  test.each(commands)("%s: %s", { timeout: 120_000 }, async (program, line) => {
    const found = await execa("bash", ["-c", `command -v ${program}`], { reject: false });
    if (found.exitCode !== 0) return void absent.add(program);
    const { exitCode, output, hosts, added } = await place.run(line, await place.analyze(line));
    expect({ exitCode, hosts, added }, output).toEqual({ exitCode: 0, hosts: [], added: undefined });
  });
});
