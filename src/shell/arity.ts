import { isRunner } from "./programs/program-table.ts";
import { isShell } from "./wrappers/shells.ts";
import { findWrapper } from "./wrappers/wrapper-table.ts";
import type { Argument } from "./syntax/word.ts";

/** How many words name a command: `git checkout` has 2, `npm run dev` 3, programs not in the table 1. */
const wordCountTable: Record<number, string> = {
  2: "git, hg, svn, jj, npm, pnpm, yarn, bun, deno, cargo, rustup, go, dotnet, mvn, gradle, ./gradlew, ./mvnw, gradlew, mvnw, sbt, lein, mix, rebar3, stack, cabal, opam, dune, swift, xcodebuild, pod, fastlane, flutter, dart, composer, bundle, gem, rails, rake, pip, pip3, poetry, uv, pdm, hatch, conda, mamba, pipenv, tox, nox, pre-commit, apt, apt-get, apt-cache, dnf, yum, zypper, pacman, apk, brew, port, snap, flatpak, choco, winget, scoop, nix, nix-env, systemctl, journalctl, loginctl, hostnamectl, timedatectl, launchctl, docker, podman, nerdctl, docker-compose, podman-compose, kubectl, helm, kustomize, minikube, kind, k3d, skaffold, tilt, oc, istioctl, argocd, flux, terraform, tofu, terragrunt, pulumi, packer, vault, consul, nomad, ansible, vagrant, make, gmake, just, task, mage, ninja, bazel, bazelisk, buck, buck2, zig, pants, meson, cmake, ctest, nx, turbo, lerna, rush, moon, changeset, ng, vue, nest, next, nuxt, astro, vite, vitest, jest, playwright, cypress, wdio, storybook, eslint, prettier, biome, oxlint, tsc, webpack, rollup, esbuild, parcel, expo, eas, react-native, cap, ionic, firebase, supabase, wrangler, vercel, netlify, fly, flyctl, heroku, railway, render, gh, glab, hub, aws, az, gcloud, gsutil, doctl, linode-cli, s3cmd, mc, rclone, sam, cdk, serverless, sls, prisma, drizzle-kit, knex, sequelize, typeorm, alembic, flyway, liquibase, dbt, sqlx, diesel, rspec, hugo, jekyll, gatsby, mdbook, sphinx, zola, ollama, protoc, buf, grpcurl, crane, skopeo, cosign, trivy, snyk, sops, age, asdf, mise, volta, fnm, nvm, rbenv, pyenv, direnv, corepack, ip, nmcli, tmux, openssl, keytool, adb, fastboot, perf, bpftrace, ffmpeg",
  3: "npm run, npm exec, pnpm run, yarn run, yarn workspace, bun run, deno task, composer run, poetry run, uv run, uv pip, uv tool, pdm run, hatch run, pipenv run, conda env, cargo nextest, go mod, go tool, go work, dotnet ef, dotnet tool, docker compose, docker image, docker container, docker network, docker volume, docker buildx, docker builder, docker context, docker system, podman compose, podman image, podman container, kubectl config, kubectl rollout, kubectl get, kubectl describe, kubectl logs, helm repo, helm dependency, gh pr, gh issue, gh repo, gh run, gh workflow, gh release, gh auth, gh label, gh search, glab mr, glab issue, glab ci, aws s3, aws ec2, aws iam, aws lambda, aws logs, aws sts, aws ecr, aws ecs, aws eks, aws rds, aws dynamodb, aws cloudformation, az vm, az group, az storage, az account, gcloud compute, gcloud run, gcloud auth, gcloud config, gcloud projects, gcloud container, terraform state, terraform workspace, tofu state, tofu workspace, pulumi stack, pulumi config, git stash, git remote, git worktree, git submodule, git config, git notes, git bisect, git reflog, git sparse-checkout, git lfs, rails db, prisma migrate, prisma db, supabase db, firebase emulators, wrangler d1, wrangler kv, heroku config, turbo run, nx run, lerna run, nix flake, rustup toolchain, rustup target, brew services, apt mark, ip addr, ip route, ip link, mise run, bundle exec",
};

const wordCounts: ReadonlyMap<string, number> = new Map(
  Object.entries(wordCountTable).flatMap(([count, names]) =>
    names.split(", ").map((name): [string, number] => [name, Number(count)]),
  ),
);

/** Subcommands of package managers that run any program. */
const runnerSubcommands = new Set(["exec", "x", "dlx"]);
const runnerCommands = new Set([
  "bundle exec",
  "poetry run",
  "uv run",
  "pdm run",
  "hatch run",
  "pipenv run",
  "conda run",
  "mamba run",
  "mise exec",
  "uv tool",
  "nix run",
  "nix develop",
  "nix shell",
  "go run",
  "deno run",
  "deno eval",
  "deno repl",
  "volta run",
  "nvm exec",
  "corepack yarn",
  "corepack npm",
  "corepack pnpm",
  "direnv exec",
  "stack exec",
  "cabal exec",
  "opam exec",
  "rbenv exec",
  "pyenv exec",
  "asdf exec",
  "dotnet exec",
  "dart run",
  "swift run",
  "flutter run",
  "zig run",
  "buck run",
  "buck2 run",
  "bazel run",
  "bazelisk run",
]);

/** Programs that run the program named by the next word. */
const runnerPrograms = new Set(["npx", "bunx", "pnpx", "uvx", "dotenv", "env-cmd", "cross-env"]);

/** Returns how many words name a runner (`bundle exec`); 0 if there is none. */
export function countRunnerWords(first: string, second: string): number {
  if (runnerPrograms.has(first)) return 1;
  const isPair =
    runnerCommands.has(`${first} ${second}`) || (runnerSubcommands.has(second) && wordCounts.has(first));
  return isPair ? 2 : 0;
}

/** Programs whose `run` and `exec` run anything, often on another machine. */
const containerPrograms = new Set([
  "docker",
  "podman",
  "nerdctl",
  "docker-compose",
  "podman-compose",
  "kubectl",
  "oc",
  "heroku",
  "fly",
  "flyctl",
  "vagrant",
  "gcloud",
]);

/**
 * Returns a pattern of commands similar to a simple command (`git checkout *`). None if the pattern would match any
 * program: for shells, wrappers, interpreters, runners, and unknown words. With `exact` the pattern is the whole command.
 */
export function createAlwaysPatterns(argv: readonly Argument[], exact = false): string[] {
  const name = argv[0]?.text ?? "";
  const base = name.slice(name.lastIndexOf("/") + 1);
  if (isShell(base) || findWrapper(base) || isRunner(base)) return [];
  const second = argv[1]?.text ?? "";
  if (countRunnerWords(base, second) > 0) return [];
  const words = argv.slice(0, countNameWords(base, second));
  if (
    containerPrograms.has(base) &&
    words.some((word) => /^(?:run|exec|attach|cp|debug|ssh|console)$/.test(word.text))
  )
    return [];
  if (!words.every(isFixed)) return [];
  if (exact) return createExactPatterns(argv);
  if (words.slice(1).some((word) => word.text.startsWith("-"))) return createExactPatterns(argv);
  return [`${words.map((word) => word.text).join(" ")} *`];
}

/** Whether more than the program's name is needed to name the command. */
export function isNamedByWords(name: string): boolean {
  return wordCounts.has(name);
}

function countNameWords(first: string, second: string): number {
  return wordCounts.get(`${first} ${second}`) ?? wordCounts.get(first) ?? 1;
}

function createExactPatterns(argv: readonly Argument[]): string[] {
  return argv.every(isFixed) ? [argv.map((word) => word.text).join(" ")] : [];
}

function isFixed(word: Argument): boolean {
  const [value, ...others] = word.values ?? [];
  return (
    value !== undefined &&
    others.length === 0 &&
    !value.glob &&
    /^[^\s*?]+$/.test(word.text) &&
    value.text === word.text
  );
}
