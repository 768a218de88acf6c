import { describe, expect, test } from "vitest";
import { findCheckKinds, isHarmless, mayBeCheck, rewritesFiles } from "../../../src/evidence/checks.ts";

const checks: [command: string, ...kinds: string[]][] = [
  ["npm test", "test"],
  ["npm t", "test"],
  ["npm run test:unit -- a.test.ts", "test"],
  ["npm run --silent build", "build"],
  ["npm --prefix web run lint", "lint"],
  ["npm run check", "check"],
  ["pnpm -r test", "test"],
  ["pnpm --filter web typecheck", "types"],
  ["yarn test", "test"],
  ["npx vitest run a.test.ts", "test"],
  ["npx -y -p vitest vitest run", "test"],
  ["./node_modules/.bin/jest", "test"],
  ["pnpm exec tsc --noEmit", "types"],
  ["tsc -p .", "types", "build"],
  ["bun test", "test"],
  ["deno test -A", "test"],
  ["node --test", "test"],
  ["node --run test", "test"],
  ["pytest -q tests/a.py", "test"],
  ["python -m pytest", "test"],
  ["python3 -m unittest discover", "test"],
  ["python manage.py test", "test"],
  ["uv run --with x pytest", "test"],
  ["poetry run mypy src", "types"],
  ["coverage run -m pytest", "test"],
  ["cargo test --all", "test", "build"],
  ["cargo +nightly nextest run", "test", "build"],
  ["cargo clippy -- -D warnings", "lint", "build"],
  ["cargo fmt --check", "lint"],
  ["go test ./...", "test", "build"],
  ["go vet ./...", "lint", "build"],
  ["./gradlew :app:test", "test", "build"],
  ["gradle build", "build", "test"],
  ["mvn -q verify", "test", "build"],
  ["mvn -DskipTests package", "build"],
  ["dotnet test", "test", "build"],
  ["vendor/bin/phpunit", "test"],
  ["php artisan test", "test"],
  ["composer test", "test"],
  ["bundle exec rspec spec/a_spec.rb", "test"],
  ["rake test", "test"],
  ["make", "build"],
  ["make test", "test"],
  ["make -j4 check", "test", "build"],
  ["make CC=gcc lint", "lint"],
  ["just test", "test"],
  ["ctest --output-on-failure", "test"],
  ["cmake --build build", "build"],
  ["swift test", "test", "build"],
  ["mix test", "test", "build"],
  ["flutter analyze", "types"],
  ["nx run app:test", "test"],
  ["turbo run build", "build"],
  ["bazel test //...", "test", "build"],
  ["docker compose run --rm -e A=1 web pytest -q", "test"],
  ["docker compose -f a.yml exec -T web npm test", "test"],
  ["docker exec -it web cargo test", "test", "build"],
  ["timeout 60 npm test", "test"],
  ["env CI=1 npm test", "test"],
  ["CI=1 npm test", "test"],
  ["eslint src", "lint"],
  ["prettier --check .", "lint"],
];

const noChecks = [
  "npm install",
  "npm run dev",
  "npm run lint:fix",
  "npm run formatter",
  "node app.js",
  "python app.py",
  "jest --version",
  "pytest --collect-only",
  "tsc --init",
  "vite",
  "cargo run",
  "go run .",
  "make install",
  "make -n test",
  "docker compose up",
  "git commit -m test",
  "cat test.ts",
  "prettier --write .",
  "echo npm test",
  "",
];

describe("a check", () => {
  test.each(checks)("is %s", (command, ...kinds) => {
    expect(findCheckKinds(command)).toEqual(kinds);
  });

  test.each(noChecks)("is not %j", (command) => {
    expect(findCheckKinds(command)).toEqual([]);
  });
});

test("commands that show or move files run no code of the project", () => {
  for (const command of ["ls -l", "git status", "FOO=1 cat a", "grep test a.ts"])
    expect(isHarmless(command)).toBe(true);
  for (const command of ["node app.js", "./a.sh"]) expect(isHarmless(command)).toBe(false);
});

test("unknown scripts whose name says so may be checks", () => {
  for (const command of ["./run-tests.sh", "sh scripts/ci.sh", "python test_a.py"])
    expect(mayBeCheck(command)).toBe(true);
  for (const command of ["node app.js", "./deploy.sh"]) expect(mayBeCheck(command)).toBe(false);
});

test("formatters and checkouts rewrite files that they do not name", () => {
  const rewriting = [
    "prettier --write .",
    "npx eslint --fix src",
    "cargo fmt",
    "git stash pop",
    "git checkout main",
    "black .",
  ];
  for (const command of rewriting) expect([command, rewritesFiles(command)]).toEqual([command, true]);
  const reading = [
    "prettier --check .",
    "cargo fmt --check",
    "git stash list",
    "git commit -m x",
    "git checkout -b a",
    "black --check .",
  ];
  for (const command of reading) expect([command, rewritesFiles(command)]).toEqual([command, false]);
});
