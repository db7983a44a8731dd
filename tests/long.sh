#!/bin/sh
# Checks that take hours. docs/history/long-run.md describes them and has the results of the last run.
#
#   tests/long.sh [PART...]
#
# Without arguments, all parts run:
#   programs  random programs compared with the reference for MINUTES (default 60), with a new SEED each round
#   small     all values of small dtypes, samples of the others, and pairs of every HALVES-th (default 7) value of f16
#             and bf16
#   doubles   the functions of f64 at POINTS (default 200000) arguments each
#   sweep     every STEP-th f32 (default 1: all 2^32) through every unary function
#   fuzz      each fuzz target for FUZZ_SECONDS (default 1800)
#   memcheck  MEMCHECK (default 100000) random programs, the recorded ones and tests/masks.rs under valgrind, with the
#             loops for AVX2 and the baseline's; valgrind does not support AVX-512
#   random    the distributions of RANDOM_NUMBERS (default 2^28) random numbers of each kind, with a new SEED
#   stop      the time until a run over ELEMENTS (default 10^8) elements returns after a cancellation, STOPS (default 200)
#             times
# The script stops at the first part that fails.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- programs small doubles sweep fuzz memcheck random stop
seed=${SEED:-$(date +%s)}

programs() {
    end=$(($(date +%s) + ${MINUTES:-60} * 60))
    rounds=0
    while [ "$(date +%s)" -lt "$end" ]; do
        echo "seed $seed"
        CASTWISE_SEED=$seed CASTWISE_PROGRAMS=${CASTWISE_PROGRAMS:-1000000} \
            cargo test --release --test suite -- random_programs:: --nocapture
        seed=$((seed + 1))
        rounds=$((rounds + 1))
    done
    echo "$rounds rounds of random programs"
}

# Each level runs separately, without child processes (CASTWISE_TEST_LEVEL), with a tenth of the random programs.
# Compiled code changes in anonymous memory (--smc-check). Only accesses are checked, not the use of uninitialized
# values: valgrind reports those in shifts of i8, probably because the compiler shifts wider lanes of which one half is
# uninitialized and unused. It is not proven that this is harmless.
memcheck() {
    check="'valgrind', '--quiet', '--smc-check=all-non-file', '--undef-value-errors=no', '--fair-sched=yes', '--error-exitcode=9'"
    for level in avx2 baseline; do
        CASTWISE_MEMCHECK=1 CASTWISE_TEST_LEVEL=$level CASTWISE_CPU=$level CASTWISE_PROGRAMS=${MEMCHECK:-100000} \
            cargo test --release --config "target.'cfg(unix)'.runner = [$check]" \
            --test suite -- random_programs::eager_static recorded_programs::programs_have masks::truth_values --nocapture
    done
}

for part; do
    echo "== $part"
    case $part in
    programs) programs ;;
    small) CASTWISE_HALVES=${HALVES:-7} cargo test --release --test suite -- exhaustive:: --nocapture ;;
    doubles) CASTWISE_POINTS=${POINTS:-200000} cargo test --release --test suite -- doubles:: --nocapture ;;
    sweep) cargo run --release -p xtask -- sweep --step "${STEP:-1}" ;;
    fuzz) cargo run --release -p xtask -- fuzz all "${FUZZ_SECONDS:-1800}" "$seed" ;;
    memcheck) memcheck ;;
    random) CASTWISE_RANDOM=${RANDOM_NUMBERS:-268435456} CASTWISE_SEED=$seed cargo test --release --test suite -- statistics:: ;;
    stop) cargo run --release -p xtask -- stop_time "${ELEMENTS:-100000000}" "${STOPS:-200}" ;;
    *)
        echo "no part '$part'; there are programs, small, doubles, sweep, fuzz, memcheck and stop" >&2
        exit 2
        ;;
    esac
done
