#!/usr/bin/env bash
# Fails on weak symbols in objects that are compiled for one instruction set: the linker keeps one copy of a weak
# symbol for the whole program, so AVX code could end up where the processor has none.
# Usage: tools/check_kernel_symbols.sh BUILD_FOLDER
set -euo pipefail
build=${1:?usage: tools/check_kernel_symbols.sh BUILD_FOLDER}

mapfile -t objects < <(find "$build" -name '*_avx*.cc.o' | sort)
if ((${#objects[@]} == 0)); then
  echo "no object of an instruction set in $build: not built, or not an x86-64 machine"
  exit 77
fi
failed=0
for object in "${objects[@]}"; do
  # W, w, V, v: weak; u: unique over all libraries. Undefined weak symbols (lower case, no address) define nothing.
  weak=$(nm -C --defined-only "$object" | awk '$2 ~ /^[WwVvu]$/' | grep -v ' DW\.ref\.' || true)
  if [[ -n $weak ]]; then
    printf '%s defines weak symbols:\n%s\n' "$object" "$weak"
    failed=1
  fi
done
((failed)) || echo "${#objects[@]} objects, no weak symbol"
exit "$failed"
