#!/usr/bin/env bash
# One entrance: installs what is missing, builds, then does the thing. Needs only bash and Debian's own tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  case ${1:-} in
    serve) cat <<'HELP' ;;
./cachalot.sh serve [--yes] [ARGUMENTS]
Builds the release preset and starts the server; ARGUMENTS go to `cachalot serve` (see build/release/cachalot serve
--help once it is built). Without arguments it serves the default model, which it fetches first.
HELP
    test) cat <<'HELP' ;;
./cachalot.sh test [--yes] [--slow]
Builds the release and dev (address and undefined-behaviour sanitizers) presets, checks the sources, fetches the default
model and runs the fast tests in both builds; those that need the model or measure whole loads in the release build only.
--slow runs the slow ones too, in the release build.
HELP
    bench) cat <<'HELP' ;;
./cachalot.sh bench [--yes] [ARGUMENTS]
Builds the release preset and measures; ARGUMENTS go to `cachalot bench`.
HELP
    bench-check) cat <<'HELP' ;;
./cachalot.sh bench-check [--yes] [--record]
Builds the release preset and compares the instructions of key kernels, counted by callgrind, with the recorded ones
(bench/instruction_counts.txt). --record writes those anew.
HELP
    build) cat <<'HELP' ;;
./cachalot.sh build [--yes] [PRESET...]
Builds everything in the given presets (release, dev, tsan, clang); release without one.
HELP
    format) cat <<'HELP' ;;
./cachalot.sh format [--yes] [--check]
Formats all C++ files. --check only lists what would change, and fails if anything would.
HELP
    lint) cat <<'HELP' ;;
./cachalot.sh lint [--yes] [--all]
Builds with clang and thread-safety analysis, runs clang-tidy on the files changed since the main branch (--all: on
every file; tests are left out), and runs the checks of the sources.
HELP
    setup) cat <<'HELP' ;;
./cachalot.sh setup [--yes] [SECTION...]
Only installs the packages of packages.txt: of the sections build, test and lint, or of the given ones.
HELP
    *) cat <<'HELP' ;;
./cachalot.sh COMMAND [--yes] [ARGUMENTS]

  serve    build and start the server          test     build and run all fast tests
  bench    build and measure                   build    build everything
  format   format the sources                  lint     static checks
  setup    install the packages only           bench-check  count the kernels' instructions
  COMMAND --help says more

Missing Debian packages (packages.txt) are shown and installed after a question. --yes (or -y, CI=true or CACHALOT_YES=1)
answers it.
HELP
  esac
}

say() {
  if [[ -t 2 ]]; then printf '\033[1m%s\033[0m\n' "$*" >&2; else printf '%s\n' "$*" >&2; fi
}
die() { printf 'cachalot.sh: %s\n' "$*" >&2; exit 1; }

# ---- packages

# The packages of the named sections of packages.txt.
packages_of() {
  local section line wanted
  while IFS= read -r line; do
    if [[ $line =~ ^#\ \[([a-z]+)\] ]]; then
      section=${BASH_REMATCH[1]}
    elif [[ -n $line && $line != \#* ]]; then
      for wanted in "$@"; do
        if [[ $section == "$wanted" ]]; then echo "$line"; fi
      done
    fi
  done <packages.txt
}

installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# What apt-get would do: lines "Inst NAME ..." and "Remv NAME ...".
simulated() { LC_ALL=C apt-get install -s --no-install-recommends "$@" 2>/dev/null | grep -E '^(Inst|Remv) '; }

confirm() {
  if [[ $yes == true ]]; then return; fi
  if [[ ! -t 0 ]]; then
    die "this needs a yes and there is no terminal to ask on; run it with --yes, or install the packages yourself"
  fi
  local answer
  read -r -p "$1 [y/N] " answer
  if [[ ! $answer =~ ^[Yy] ]]; then die "stopped; nothing was installed"; fi
}

# Installs what is missing of the named sections.
install_packages() {
  local section
  for section in "$@"; do
    if [[ -z $(packages_of "$section") ]]; then die "packages.txt has no section $section"; fi
  done
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "This is not a Debian system: the packages of packages.txt must be there under their names here."
    return
  fi
  local package missing=() plan removed
  while IFS= read -r package; do
    if ! installed "$package"; then missing+=("$package"); fi
  done < <(packages_of "$@" | sort -u)
  if ((${#missing[@]} == 0)); then return; fi

  # shellcheck source=/dev/null
  if [[ $(. /etc/os-release && echo "$ID $VERSION_ID") != "debian 12" ]]; then
    say "Cachalot is made for Debian 12; other releases may name packages differently."
  fi
  say "Missing packages: ${missing[*]}"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "installing them needs root: run this as root, or install sudo"
  fi
  if ! plan=$(simulated "${missing[@]}"); then
    confirm "Fetch the package lists (apt-get update) to see what they bring along?"
    as_root apt-get update -q || die "apt-get update failed"
    plan=$(simulated "${missing[@]}") || die "apt cannot install them; try: apt-get install ${missing[*]}"
  fi
  removed=$(awk '$1 == "Remv" { printf " %s", $2 }' <<<"$plan")
  say "apt-get will install $(grep -c '^Inst ' <<<"$plan") packages, with what they depend on."
  if [[ -n $removed ]]; then say "It will REMOVE, to replace them:$removed"; fi
  confirm "Go on?"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install the packages"
}

# ---- building

# build_preset PRESET [TARGET...]
build_preset() {
  local preset=$1
  shift
  cmake --preset "$preset" >"build/$preset.log" 2>&1 || { cat "build/$preset.log" >&2; return 1; }
  ninja -C "build/$preset" -j "$(nproc)" "$@"
}

# ---- summary

results=()
failures=0

# step NAME COMMAND...: runs it, notes outcome and time, and goes on.
step() {
  local name=$1 begin=$SECONDS outcome=ok
  shift
  say "== $name"
  if ! "$@"; then
    outcome=FAILED
    failures=$((failures + 1))
  fi
  results+=("$(printf '%-28s %-7s %4d s' "$name" "$outcome" $((SECONDS - begin)))")
  [[ $outcome == ok ]]
}

finish() {
  say "== Summary"
  printf '  %s\n' "${results[@]}" >&2
  if ((failures)); then die "$failures of ${#results[@]} steps failed"; fi
  say "All ${#results[@]} steps passed."
  exit 0
}

# ---- commands

release_program() {
  install_packages build
  build_preset release cachalot >&2 || die "the build failed"
}

run_serve() {
  release_program
  exec build/release/cachalot serve "$@"
}

run_bench() {
  release_program
  exec build/release/cachalot bench "$@"
}

run_bench-check() {
  install_packages build bench
  build_preset release kernel_cases >&2 || die "the build failed"
  exec bench/check_instructions.py "$@" build/release/kernel_cases
}

run_build() {
  local preset presets=("$@")
  if (($# == 0)); then presets=(release); fi
  for preset in "${presets[@]}"; do
    case $preset in
      release | dev | tsan) install_packages build ;;
      clang) install_packages build lint ;;
      *) die "no preset $preset; there are release, dev, tsan and clang" ;;
    esac
    build_preset "$preset" || die "the build of $preset failed"
  done
}

ctest_in() {
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure "$@"
}

run_test() {
  local slow=false argument
  for argument in "$@"; do
    case $argument in
      --slow) slow=true ;;
      *) usage test >&2; die "test: unknown argument $argument" ;;
    esac
  done
  install_packages build test
  step "build release" build_preset release || finish
  step "checks" ctest_in release -L check -j "$(nproc)" || true
  step "fetch the default model" build/release/cachalot fetch smollm2 || finish
  step "fast tests, release" ctest_in release -LE 'check|slow' -j 2 || true
  if step "build dev (sanitizers)" build_preset dev; then
    step "fast tests, dev" ctest_in dev -LE 'check|slow|model|trial' -j 2 || true
  fi
  if [[ $slow == true ]]; then step "slow tests, release" ctest_in release -L slow -j 1 || true; fi
  finish
}

cpp_files() { find src fuzz tests bench -name '*.h' -o -name '*.cc' | sort; }

run_format() {
  install_packages lint
  case ${1:-} in
    '') cpp_files | xargs clang-format -i ;;
    --check) cpp_files | xargs clang-format --dry-run -Werror ;;
    *) usage format >&2; die "format: unknown argument $1" ;;
  esac
}

# Files that differ from where this branch left main, or all outside of a git checkout.
changed_files() {
  local since
  if since=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD 2>/dev/null); then
    git diff --name-only --diff-filter=d "$since"
    git ls-files --others --exclude-standard
  else
    find src -type f
  fi
}

tidy() {
  local files
  if [[ $1 == all ]]; then files=$(find src -type f); else files=$(changed_files); fi
  files=$(grep '^src/.*\.cc$' <<<"$files" | grep -Ev '_(test|bench)\.cc$|/testing/' | sort -u || true)
  if [[ -z $files ]]; then
    echo "no changed file"
    return
  fi
  xargs -P "$(nproc)" -n 4 clang-tidy -p build/clang --quiet --warnings-as-errors='*' <<<"$files"
}

run_lint() {
  local which=changed
  case ${1:-} in
    '') ;;
    --all) which=all ;;
    *) usage lint >&2; die "lint: unknown argument $1" ;;
  esac
  install_packages build lint
  step "format" run_format --check || true
  step "build clang" build_preset clang || finish
  step "clang-tidy, $which files" tidy "$which" || true
  step "checks" ctest_in clang -L check -j "$(nproc)" || true
  finish
}

# ---- arguments

yes=false
if [[ ${CI:-} == true || ${CACHALOT_YES:-} == 1 ]]; then yes=true; fi
command=${1:-}
if (($#)); then shift; fi
arguments=()
while (($#)); do
  case $1 in
    --yes | -y) yes=true ;;
    --help | -h) usage "$command"; exit 0 ;;
    --) shift; arguments+=("$@"); break ;;
    *) arguments+=("$1") ;;
  esac
  shift
done

case $command in
  serve | test | bench | bench-check | build | format | lint)
    mkdir -p build
    "run_$command" "${arguments[@]}"
    ;;
  setup)
    if ((${#arguments[@]} == 0)); then arguments=(build test lint); fi
    install_packages "${arguments[@]}"
    say "All packages are there."
    ;;
  help | --help | -h) usage "${arguments[0]:-}" ;;
  '') usage >&2; exit 1 ;;
  *) usage >&2; die "unknown command $command" ;;
esac
