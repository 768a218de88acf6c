#!/usr/bin/env bash
# Installs the packed package into an empty folder, with an empty home and nothing of this checkout, and plays the demo.
set -euo pipefail
cd "$(dirname "$0")/../.."
place=$(mktemp -d)
# Windows does not remove the working directory of a program.
trap 'cd / && rm -rf "$place" || true' EXIT

npm pack --silent --pack-destination "$place" >/dev/null
cd "$place"
mkdir home
export HOME="$place/home"
npm install --silent --global --prefix "$place/installed" ./fairlead-*.tgz
# On Windows npm installs programs into the folder itself.
bin="$place/installed/bin"
[ -d "$bin" ] || bin="$place/installed"
"$bin/fairlead" --version
"$bin/fairlead" demo >demo.txt || { cat demo.txt; exit 1; }
grep -q "after the last change node --test passed" demo.txt || { cat demo.txt; exit 1; }
echo "The demo was played."
