/** A call of a working hour: a command line, or a file that a tool reads or changes. */
export type HourCall =
  | {
      readonly bash: string;
      /** The host that it connects to. */
      readonly host?: string;
      /**
       * Whether it uses a service of the computer, so that it fails in the sandbox and asks to run outside.
       */
      readonly needsOutside?: true;
    }
  | { readonly read: string }
  | { readonly edit: string };

const run = (...lines: string[]): HourCall[] => lines.map((bash) => ({ bash }));
const reach = (host: string, ...lines: string[]): HourCall[] => lines.map((bash) => ({ bash, host }));
const runOutside = (...lines: string[]): HourCall[] => lines.map((bash) => ({ bash, needsOutside: true }));
const read = (...paths: string[]): HourCall[] => paths.map((path) => ({ read: path }));
const edit = (...paths: string[]): HourCall[] => paths.map((path) => ({ edit: path }));

/** An hour on a web application: a bug, a feature with a new dependency, a release branch. Written for this test. */
export const workingHour: readonly HourCall[] = [
  // Getting to know the project.
  ...run("git status", "git log --oneline -10", "ls -la", "ls src test", "cat package.json", "git branch -a"),
  ...read(
    "README.md",
    "package.json",
    "src/server.ts",
    "src/routes/cart.ts",
    "src/db.ts",
    "test/cart.test.ts",
  ),
  ...run(
    "rg -n 'total' src",
    "grep -rn TODO src | head -20",
    "find src -name '*.ts' | wc -l",
    "wc -l src/*.ts",
  ),
  ...run(
    "node --version && npm --version",
    "npm ls --depth=0",
    "git diff --stat",
    "git blame -L 1,40 src/cart.ts",
  ),
  // A bug in the cart.
  ...run(
    "npm test",
    "npx vitest run test/cart.test.ts",
    "sed -n 1,80p src/cart.ts",
    "git log -p -3 -- src/cart.ts",
  ),
  ...read("src/cart.ts", "src/money.ts", "test/money.test.ts"),
  ...edit("test/cart.test.ts"),
  ...run("npx vitest run test/cart.test.ts"),
  ...edit("src/cart.ts", "src/money.ts"),
  ...run("npx vitest run test/cart.test.ts", "npm test", "npx tsc --noEmit", "npm run lint"),
  ...edit("src/cart.ts"),
  ...run("npm run lint", "git diff", "git add src/cart.ts src/money.ts test/cart.test.ts"),
  ...run('git commit -m "Round totals after discounts"', "git show --stat"),
  // A feature.
  ...run("git switch -c export-orders", "rg -l 'Order' src", "ls src/routes", "cat src/routes/orders.ts"),
  ...read("src/routes/orders.ts", "src/orders.ts", "src/types.ts", "test/orders.test.ts", "tsconfig.json"),
  ...run("cat .env.example", "node -e 'console.log(process.versions.v8)'", "npm view csv-stringify version"),
  ...reach("registry.npmjs.org", "npm install csv-stringify", "npm audit"),
  ...run("git diff package.json", "ls node_modules/csv-stringify/lib"),
  ...read("node_modules/csv-stringify/README.md"),
  ...edit("src/export.ts", "src/routes/orders.ts", "src/types.ts", "test/export.test.ts"),
  ...run("npx tsc --noEmit", "npx vitest run test/export.test.ts"),
  ...edit("src/export.ts", "test/export.test.ts"),
  ...run(
    "npx vitest run test/export.test.ts",
    "npm test -- --coverage",
    "cat coverage/coverage-summary.json | head",
  ),
  ...run(
    "mkdir -p fixtures && cp test/data/orders.json fixtures/",
    "rm -rf coverage",
    "touch fixtures/empty.csv",
  ),
  ...run(
    "npm run build",
    "ls -lh dist",
    "node dist/export.js fixtures/orders.json > out.csv",
    "head -3 out.csv; rm out.csv",
  ),
  // The development server, with its database.
  ...run("cat .env", "cat docker-compose.yml"),
  ...runOutside("docker compose up -d db", "docker compose ps", "npm run migrate"),
  ...run("npm run dev &", "curl -s localhost:3000/health", "curl -s localhost:3000/orders/export | head -2"),
  ...run("curl -i localhost:3000/orders", "tail -20 server.log", "ls migrations", "pkill -f 'npm run dev'"),
  ...runOutside("psql -c 'select count(*) from orders'"),
  ...read("docker-compose.yml", "migrations/004-orders.sql", "src/config.ts", "config/default.yml"),
  ...edit("src/routes/orders.ts", "src/export.ts"),
  ...run("npm test", "npm run lint -- --fix", "npx prettier --write src/export.ts", "git diff --check"),
  ...run(
    "git add -A",
    'git commit -m "Export orders as CSV"',
    "git push -u origin export-orders",
    "gh pr create --fill",
  ),
  // Scripts and data.
  ...read("scripts/seed.py", "Makefile", ".github/workflows/ci.yml"),
  ...run(
    "make help",
    "python3 scripts/seed.py --dry-run",
    "python3 -m venv .venv",
    ". .venv/bin/activate && pip list",
  ),
  ...reach("pypi.org", "pip install -r requirements.txt"),
  ...edit("scripts/seed.py", "Makefile", ".github/workflows/ci.yml"),
  ...run("python3 -m pytest -q scripts", "make seed", "make -n deploy", "jq '.[0]' fixtures/orders.json"),
  ...run(
    "sed -i 's/limit: 10/limit: 50/' config/default.yml",
    "awk -F, '{ print $2 }' fixtures/orders.csv | sort | uniq -c",
  ),
  ...run("tar czf /tmp/fixtures.tgz fixtures", "du -sh node_modules dist", "cat ../shared/eslint.config.js"),
  // A release branch.
  ...reach("github.com", "git fetch origin", "git pull --rebase"),
  ...run(
    "git rebase origin/main",
    "git stash",
    "git stash pop",
    "git cherry-pick HEAD~1",
    "git reset --soft HEAD~1",
  ),
  ...run(
    "git merge origin/main",
    "npm ci",
    "npm test",
    "npm version patch --no-git-tag-version",
    "git tag v1.2.4",
  ),
  ...read("CHANGELOG.md", "docs/api.md"),
  ...edit("CHANGELOG.md", "docs/api.md", "package.json"),
  ...run('git commit -am "Release 1.2.4"', "git push", "git push --tags", "git branch -D export-orders"),
  ...run("git log --oneline origin/main..HEAD", "git diff HEAD~1 --stat", "rm -rf dist", "npm run build"),
  ...run("ls ~/.npm/_logs | tail -3", "df -h .", "ps aux | head -5", "git status --short"),
];
