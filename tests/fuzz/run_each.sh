#!/usr/bin/env bash
# tests/fuzz/run_each.sh SECONDS [TARGET...]: builds the preset `fuzz` (it needs clang) and runs each target that long, JOBS (1) at a time.
# What a target finds is kept in build/fuzz-findings; its growing corpus is in build/fuzz-corpus and starts from tests/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:?how many seconds each}
shift
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz >/dev/null
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
if [ $# -eq 0 ]; then
    set -- $(ls tests/fuzz/corpus)
fi

fuzz() {
    name=$1
    seconds=$2
    failed=0
    mkdir -p "build/fuzz-corpus/$name" "build/fuzz-findings/$name"
    log="build/fuzz-findings/$name.log"
    if ! nice -n 19 "build/fuzz/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=3072 \
        -print_final_stats=1 -artifact_prefix="build/fuzz-findings/$name/" "build/fuzz-corpus/$name" "tests/fuzz/corpus/$name" \
        >"$log" 2>&1; then
        failed=1
        echo "$name: a finding, see $log"
    fi
    printf '%s: %s runs in %s s\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$seconds"
    return "$failed"
}
export -f fuzz
printf '%s\n' "$@" | xargs -P "${JOBS:-1}" -I{} bash -c 'fuzz {} '"$seconds"
