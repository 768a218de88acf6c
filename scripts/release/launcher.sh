#!/bin/sh
# Starts Fairlead on the Node in the same folder, also through a link.
file=$0
while [ -L "$file" ]; do
  target=$(readlink "$file")
  case $target in
    /*) file=$target ;;
    *) file=${file%/*}/$target ;;
  esac
done
folder=${file%/*}
exec "$folder/node" "$folder/app/bin/fairlead.js" "$@"
