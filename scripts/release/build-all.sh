#!/usr/bin/env bash
# Builds the archives for all targets. Downloads Node, whose checksums it compares, and ripgrep.
# Usage: build-all.sh RELEASE_FOLDER
# With NODE_DOWNLOADS=FOLDER nothing but ripgrep is downloaded: Node is FOLDER/node-vVERSION-SYSTEM.tar.gz (or .exe) as in
# Node's downloads, checked if SHASUMS256.txt is there, or FOLDER/node-SYSTEM/bin/node as in the npm packages of that
# name. Targets without one are named and not built.
set -euo pipefail
out=$1
downloads=${NODE_DOWNLOADS:+$(realpath "$NODE_DOWNLOADS")}
cd "$(dirname "$0")/../.."
version=$(cat .nvmrc)
ripgrep=$(node -p 'require("./node_modules/@vscode/ripgrep/package.json").version')
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT

nodejs=https://nodejs.org/dist
# Node's own site has no programs for musl.
unofficial=https://unofficial-builds.nodejs.org/download/release

# SITE FILE: prints a file of this version.
download() {
  curl --fail --silent --show-error --location "$1/v$version/$2"
}

if [ -z "$downloads" ]; then
  for site in "$nodejs" "$unofficial"; do download "$site" SHASUMS256.txt >>"$parts/SHASUMS256.txt"; done
elif [ -f "$downloads/SHASUMS256.txt" ]; then
  cp "$downloads/SHASUMS256.txt" "$parts"
else
  echo "There is no SHASUMS256.txt: Node is not checked." >&2
fi

# Prints the path of Node's program: TARGET DOWNLOAD
get_node() {
  local file="node-v$version-$2" path="$parts/$1" site=$nodejs
  case $2 in */*) file=$2 ;; *-musl.*) site=$unofficial ;; esac
  mkdir -p "$path/$(dirname "$file")"
  if [ -z "$downloads" ]; then
    download "$site" "$file" >"$path/$file" || return 2
  elif find_npm_node "$1"; then
    return
  else
    cp "$downloads/$file" "$path/$file" 2>/dev/null || return 1
  fi
  if [ -f "$parts/SHASUMS256.txt" ]; then
    (cd "$path" && grep " $file\$" ../SHASUMS256.txt | sha256sum --check --quiet) || return 2
  fi
  case $file in
    *.tar.gz) tar -xzf "$path/$file" -C "$path" --strip-components=1 && echo "$path/bin/node" ;;
    *) echo "$path/$file" ;;
  esac
}

# Prints the path of Node's program: TARGET
find_npm_node() {
  local name="node-${1/win32/win}" program
  for program in node node.exe; do
    if [ -f "$downloads/$name/bin/$program" ]; then
      echo "$downloads/$name/bin/$program"
      return
    fi
  done
  return 1
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

node scripts/release/list-targets.ts | while read -r target system source; do
  program=$(get_node "$target" "$source") && status=0 || status=$?
  if [ $status -eq 1 ] && [ -n "$downloads" ]; then
    echo "$target was not built: $downloads has no Node for it." >&2
    continue
  fi
  [ $status -eq 0 ]
  node scripts/release/build-archive.ts "$target" --node "$program" --ripgrep "$(download_ripgrep "$system")" --out "$out"
done
cat "$out"/*.sha256 >"$out/SHA256SUMS"
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
