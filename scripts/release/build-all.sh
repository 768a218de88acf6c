#!/usr/bin/env bash
# Builds the archives for all targets on Linux with Docker (for Node of Alpine Linux). Downloads Node and ripgrep.
# Usage: build-all.sh RELEASE_FOLDER
# With NODE_DOWNLOADS=FOLDER nothing but ripgrep is downloaded: Node is FOLDER/node-vVERSION-SYSTEM.tar.gz (or .exe) as on
# nodejs.org, checked if SHASUMS256.txt is there, or FOLDER/node-SYSTEM/bin/node as in the npm packages of that name.
# Targets without one are named and not built.
set -euo pipefail
out=$1
downloads=${NODE_DOWNLOADS:+$(realpath "$NODE_DOWNLOADS")}
cd "$(dirname "$0")/../.."
version=$(cat .nvmrc)
ripgrep=$(node -p 'require("./node_modules/@vscode/ripgrep/package.json").version')
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT

# FILE PATH
get_from_nodejs() {
  if [ -z "$downloads" ]; then
    curl --fail --silent --show-error --location --output "$2" "https://nodejs.org/dist/v$version/$1"
  elif [ -f "$downloads/$1" ]; then
    cp "$downloads/$1" "$2"
  else
    return 1
  fi
}

get_from_nodejs SHASUMS256.txt "$parts/SHASUMS256.txt" || echo "There is no SHASUMS256.txt: Node is not checked." >&2

# Prints the path of Node's program: TARGET DOWNLOAD
download_node() {
  local file="node-v$version-$2" path="$parts/$1"
  case $2 in */*) file=$2 ;; esac
  mkdir -p "$path/$(dirname "$file")"
  get_from_nodejs "$file" "$path/$file" || return 1
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

# Prints the path of Node's program: TARGET WAY SOURCE
get_node() {
  if [ -n "$downloads" ] && find_npm_node "$1"; then return; fi
  case $2 in
    download) download_node "$1" "$3" ;;
    alpine) [ -z "$downloads" ] && copy_alpine_node "$1" "$3" ;;
  esac
}

node scripts/release/list-targets.ts | while read -r target system way source; do
  program=$(get_node "$target" "$way" "$source") && status=0 || status=$?
  if [ $status -eq 1 ] && [ -n "$downloads" ]; then
    echo "$target was not built: $downloads has no Node for it." >&2
    continue
  fi
  [ $status -eq 0 ]
  node scripts/release/build-archive.ts "$target" --node "$program" --ripgrep "$(download_ripgrep "$system")" --out "$out"
done
cat "$out"/*.sha256 >"$out/SHA256SUMS"
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
