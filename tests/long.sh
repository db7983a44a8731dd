#!/bin/sh
# The checks of hours: docs/long-run.md says what they are, and what the last run gave.
#
#   tests/long.sh [PART...]
#
# Parts, all of them without arguments:
#   programs  random programs against the reference for MINUTES (default 60), each round from another SEED
#   small     all values of small dtypes, samples of the others, and of halves every HALVES-th (default 7) with
#             every HALVES-th
#   doubles   the functions of f64 at POINTS (default 200000) arguments each
#   sweep     every STEP-th f32 (default 1: all 2^32) through every unary function
#   fuzz      each fuzz target for FUZZ_SECONDS (default 1800)
#   memcheck  MEMCHECK (default 100000) random programs, the recorded ones and every form of truth values under valgrind,
#             by the loops for AVX2 and the baseline's; valgrind has no AVX-512
#   stop      how long a run over ELEMENTS (default 10^8) elements goes on after each of STOPS (default 200) stops
# A part that fails ends the script.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- programs small doubles sweep fuzz memcheck stop
seed=${SEED:-$(date +%s)}

programs() {
    end=$(($(date +%s) + ${MINUTES:-60} * 60))
    rounds=0
    while [ "$(date +%s)" -lt "$end" ]; do
        echo "seed $seed"
        CASTWISE_SEED=$seed CASTWISE_PROGRAMS=${CASTWISE_PROGRAMS:-1000000} \
            cargo test --release --test random_programs -- --nocapture
        seed=$((seed + 1))
        rounds=$((rounds + 1))
    done
    echo "$rounds rounds of random programs"
}

# Each level by itself, without children (CASTWISE_TEST_LEVEL): random programs are a tenth then. Memory that is code changes,
# and is nobody's file. Only accesses are checked, not the use of unset values: valgrind reports those in shifts of i8, probably
# because the compiler shifts wider lanes of which one half is unset and unused. That this is harmless is not proven.
memcheck() {
    check="'valgrind', '--quiet', '--smc-check=all-non-file', '--undef-value-errors=no', '--fair-sched=yes', '--error-exitcode=9'"
    for level in avx2 baseline; do
        CASTWISE_MEMCHECK=1 CASTWISE_TEST_LEVEL=$level CASTWISE_CPU=$level CASTWISE_PROGRAMS=${MEMCHECK:-100000} \
            cargo test --release --config "target.'cfg(unix)'.runner = [$check]" \
            --test random_programs --test recorded_programs --test masks -- --nocapture \
            eager_static programs_have truth_values
    done
}

for part; do
    echo "== $part"
    case $part in
    programs) programs ;;
    small) CASTWISE_HALVES=${HALVES:-7} cargo test --release --test exhaustive -- --nocapture ;;
    doubles) CASTWISE_POINTS=${POINTS:-200000} cargo test --release --test doubles -- --nocapture ;;
    sweep) cargo run --release -p xtask -- sweep --step "${STEP:-1}" ;;
    fuzz) cargo run --release -p xtask -- fuzz all "${FUZZ_SECONDS:-1800}" "$seed" ;;
    memcheck) memcheck ;;
    stop) cargo run --release -p xtask -- stop_time "${ELEMENTS:-100000000}" "${STOPS:-200}" ;;
    *)
        echo "no part '$part'; there are programs, small, doubles, sweep, fuzz, memcheck and stop" >&2
        exit 2
        ;;
    esac
done
