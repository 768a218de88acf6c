#!/usr/bin/env bash
# Runs both scripts of the agent registry on a release folder, before anything of it is public.
# Usage: check-registry.sh CHECKOUT_OF_REGISTRY RELEASE_FOLDER (with registry/fairlead and the archive of this system)
set -euo pipefail
checkout=$1
release=$2

rm -rf "$checkout/fairlead" "$checkout/.sandbox/binary/fairlead"
cp -R "$release/registry/fairlead" "$checkout/fairlead"
# The archives are not at their addresses yet; the scripts take an archive that is already in the sandbox.
mkdir -p "$checkout/.sandbox/binary/fairlead"
cp "$release"/fairlead-*.tar.gz "$checkout/.sandbox/binary/fairlead/"

cd "$checkout"
SKIP_URL_VALIDATION=1 python3 .github/workflows/build_registry.py
python3 .github/workflows/verify_agents.py --agent fairlead --type binary
python3 .github/workflows/verify_agents.py --agent fairlead --type binary --auth-check
