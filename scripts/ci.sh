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
    # Windows: without the tests that need mkfifo, sh, POSIX signals or POSIX paths, which most test files do.
    npm run check
    npx vitest run test/unit/workspace/windows-command.test.ts
    echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}' |
      node bin/fairlead.js acp |
      head -n 1 | node -e 'JSON.parse(require("fs").readFileSync(0, "utf8")).result.agentCapabilities.loadSession || process.exit(1)'
    ;;
esac
