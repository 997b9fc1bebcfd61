#!/bin/sh
# Compiles the backend ID of one C file and runs Kilim's operator cases on it: conform.sh ID FILE.c [options of `kilim conform`]
# Exit codes: 0 nothing is wrong, 1 a result is wrong, 3 the library cannot be used, 5 it does not compile.
set -u
id=$1 source=$2
shift 2
folder=$(mktemp -d) || exit 4
trap 'rm -rf "$folder"' EXIT
"${CC:-cc}" -std=c11 -O1 -shared -fPIC ${CFLAGS:-} -I "${KILIM_INCLUDE:-include}" "$source" -o "$folder/libbackend_$id.so" || exit 5
"${KILIM:-kilim}" conform --backends "$id" --plugin-path "$folder" "$@"
