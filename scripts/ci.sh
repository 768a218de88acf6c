#!/usr/bin/env bash
# Checks a clean checkout. The workflows in .github/ and .ci/run call this script and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

npm ci
echo "Node of the checks: $(npm exec --call 'node --version')"

case "$(uname -s)" in
  Linux)
    npm run verify
    # To see that the bench runs, not for its figures.
    npm run bench -- --short
    ;;
  Darwin)
    # Without the bench, which reads /proc.
    npm run verify
    ;;
  *)
    # Windows, in Git's bash: without the files that vitest.config.ts names, and without the bench.
    npm run verify
    ;;
esac
