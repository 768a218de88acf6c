#!/usr/bin/env bash
# Builds the archives for all targets on Linux with Docker (for Node of Alpine Linux). Downloads Node and ripgrep.
# Usage: build-all.sh RELEASE_FOLDER
set -euo pipefail
out=$1
cd "$(dirname "$0")/../.."
version=$(cat .nvmrc)
ripgrep=$(node -p 'require("./node_modules/@vscode/ripgrep/package.json").version')
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT

curl --fail --silent --show-error --location --output "$parts/SHASUMS256.txt" "https://nodejs.org/dist/v$version/SHASUMS256.txt"

# Prints the path of Node's program: TARGET DOWNLOAD
download_node() {
  local file="node-v$version-$2" path="$parts/$1"
  case $2 in */*) file=$2 ;; esac
  mkdir -p "$path/$(dirname "$file")"
  curl --fail --silent --show-error --location --output "$path/$file" "https://nodejs.org/dist/v$version/$file"
  (cd "$path" && grep " $file\$" ../SHASUMS256.txt | sha256sum --check --quiet)
  case $file in
    *.tar.gz) tar -xzf "$path/$file" -C "$path" --strip-components=1 && echo "$path/bin/node" ;;
    *) echo "$path/$file" ;;
  esac
}

# Prints the path of Node's program: TARGET PLATFORM
copy_alpine_node() {
  local container
  mkdir -p "$parts/$1"
  container=$(docker create --platform "$2" "node:$version-alpine")
  docker cp --quiet "$container:/usr/local/bin/node" "$parts/$1/node"
  docker rm "$container" >/dev/null
  echo "$parts/$1/node"
}

# Prints the folder of ripgrep's package: PLATFORM-ARCH
download_ripgrep() {
  local folder="$parts/ripgrep-$1"
  if [ ! -d "$folder" ]; then
    mkdir -p "$folder"
    (cd "$folder" && npm pack --silent "@vscode/ripgrep-$1@$ripgrep" | xargs tar --strip-components=1 -xzf && rm ./*.tgz)
  fi
  echo "$folder"
}

node scripts/release/list-targets.ts | while read -r target system way source; do
  case $way in
    download) program=$(download_node "$target" "$source") ;;
    alpine) program=$(copy_alpine_node "$target" "$source") ;;
  esac
  node scripts/release/build-archive.ts "$target" --node "$program" --ripgrep "$(download_ripgrep "$system")" --out "$out"
done
cat "$out"/*.sha256 >"$out/SHA256SUMS"
