#!/usr/bin/env bash
# Compiles base and the portable kernels for aarch64: what is not in an x86 file must build for another processor.
# Nothing is linked or run. Usage: tools/check_aarch64.sh BUILD_FOLDER (a configured build; objects go below it)
# Exit 77 (skipped) without the cross compiler, an error when CI is set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:?usage: tools/check_aarch64.sh BUILD_FOLDER}
compiler=aarch64-linux-gnu-g++

if ! command -v "$compiler" >/dev/null; then
  echo "$compiler is missing (Debian package g++-aarch64-linux-gnu)"
  if [[ ${CI:-} == true ]]; then exit 1; fi
  exit 77
fi
launcher="env"
if command -v ccache >/dev/null; then launcher="ccache"; fi
out=$build/aarch64
mkdir -p "$out"

compile() {
  local file=$1 folder
  folder=$(cut -d/ -f2 <<<"$file")
  # Debian keeps some portable headers (OpenSSL's configuration) under the host's name: looked at last.
  "$launcher" "$compiler" -std=c++20 -O1 -ffp-contract=off -Wall -Wextra -Wno-missing-field-initializers -Werror \
    -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL -I "$build/visible/$folder" -idirafter /usr/include/x86_64-linux-gnu \
    -c "$file" -o "$out/$(tr / _ <<<"${file%.cc}").o" || { echo "does not build for aarch64: $file"; return 1; }
}
export -f compile
export build out compiler launcher

mapfile -t files < <(find src/base src/kernels -name '*.cc' ! -name '*_test.cc' ! -name '*_bench.cc' \
  ! -name '*_avx*.cc' ! -path '*/testing/*' | sort)
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} bash -c 'compile {}'
echo "${#files[@]} files build for aarch64"
