#!/usr/bin/env bash
# Builds every fuzzer and runs each on its seeds for so many seconds; new inputs are kept under build/fuzz/corpus.
# Usage: tools/run_fuzzers.sh SECONDS [NAME...]     e.g. tools/run_fuzzers.sh 600 json
# A finding stops the run; its input is left in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:?usage: tools/run_fuzzers.sh SECONDS [NAME...]}
shift

cmake --preset fuzz >/dev/null
ninja -C build/fuzz -j "$(nproc)" fuzzers
mkdir -p build/fuzz/findings
names=("$@")
if ((${#names[@]} == 0)); then
  mapfile -t names < <(find fuzz -name '*_fuzz.cc' -printf '%f\n' | sed 's/_fuzz\.cc$//' | sort)
fi
for name in "${names[@]}"; do
  seeds=fuzz/corpus/$name
  grown=build/fuzz/corpus/$name
  mkdir -p "$grown"
  folders=("$grown")
  if [[ -d $seeds ]]; then folders+=("$seeds"); fi
  options=()
  if [[ -f fuzz/$name.dict ]]; then options+=("-dict=fuzz/$name.dict"); fi
  echo "== $name, $seconds seconds"
  "build/fuzz/fuzz/${name}_fuzz" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$name-" "${options[@]}" "${folders[@]}" 2>&1 |
    grep -Ev '^#[0-9]+[[:space:]]+(NEW|REDUCE|RELOAD|pulse)|^stat::(new_units|slowest|peak|average)' || exit 1
done
