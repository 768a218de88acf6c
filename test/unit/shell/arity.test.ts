import { describe, expect, test } from "vitest";
import { analyzeShell } from "../../../src/shell/analysis.ts";
import { context } from "./shell-table.ts";

function offered(command: string): string[] {
  return analyzeShell(command, context).flatMap((part) => (part.type === "run" ? part.similar : []));
}

describe('"always" offers', () => {
  test.each([
    ["git checkout main", "git checkout *"],
    ["git stash pop", "git stash pop *"],
    ["git status", "git status *"],
    ["npm run dev -- --port 1", "npm run dev *"],
    ["npm test", "npm test *"],
    ["npm install lodash", "npm install *"],
    ["docker compose up -d", "docker compose up *"],
    ["docker build .", "docker build *"],
    ["cargo test --all", "cargo test *"],
    ["go test ./...", "go test *"],
    ["kubectl get pods", "kubectl get pods *"],
    ["gh pr view 12", "gh pr view *"],
    ["ls -la", "ls *"],
    ["rg foo src", "rg *"],
    ["./gradlew test", "./gradlew test *"],
    ["./scripts/build.sh a", "./scripts/build.sh *"],
    ["terraform plan", "terraform plan *"],
    ["make test", "make test *"],
    ["git --no-pager log", "git --no-pager log"],
  ])("for %j: %j", (command, pattern) => {
    expect(offered(command)).toEqual([pattern]);
  });

  test.each([
    "bash a.sh",
    "sh -c x",
    "node a.js",
    "python3 a.py",
    "python3.12 a.py",
    "perl a.pl",
    "npx vitest",
    "npm exec vitest",
    "pnpm dlx x",
    "bundle exec rspec",
    "uv run a",
    "go run .",
    "docker run x",
    "docker compose exec web sh",
    "kubectl exec pod -- sh",
    "ssh host",
    "eval 'x'",
    "$X a",
    "git $X",
    "git -c a=b log",
    "sed -i s/a/b/ c",
    "LD_PRELOAD=x ls",
    "/bin/bash a.sh",
    "choom -n 1 ls",
    "perf stat ls",
    "hyperfine ls",
    "m4 a",
    "dc a",
    "tclsh a",
    "erl -eval x",
    "zig run a.zig",
    "bazel run a",
    "heroku run ls",
    "gcloud compute ssh host",
  ])("nothing for %j", (command) => {
    const [own] = analyzeShell(command, context)
      .filter((part) => part.type === "run")
      .slice(-1);
    expect(own?.similar).toEqual([]);
  });

  test("for a wrapper only the wrapped command", () => {
    expect(offered("sudo git status")).toEqual(["git status *"]);
    expect(offered("timeout 5 npm test")).toEqual(["npm test *"]);
  });

  test("an outside path's folder with everything in it, but not the root or home folder", () => {
    const folders = (command: string) =>
      analyzeShell(command, context).flatMap((part) => (part.type === "outside" ? part.similar : []));
    expect(folders("cat /opt/data/a")).toEqual(["/opt/data", "/opt/data/*"]);
    expect(folders("cat /a")).toEqual([]);
    expect(folders("cat ~/a")).toEqual([]);
    expect(folders("ls /home")).toEqual([]);
  });
});
