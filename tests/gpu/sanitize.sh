#!/bin/sh
# Small GPU tests under compute-sanitizer: accesses outside arrays, races in shared memory. sh tests/gpu/sanitize.sh PROGRAM [TOOL...]
# Where there is no compute-sanitizer or no GPU it says so and ends well.
set -u
program=$1
shift
[ $# -gt 0 ] || set -- memcheck racecheck
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ ! -x "$sanitizer" ]; then
    echo "skipped: there is no compute-sanitizer"
    exit 0
fi
if ! nvidia-smi -L >/dev/null 2>&1; then
    echo "skipped: there is no GPU"
    exit 0
fi
status=0
for tool in "$@"; do
    echo "== $tool"
    # Seeds as in the tests, a few of each kind; a kernel is tens of times slower than without.
    # Racecheck follows barriers alone: CLEBSCH_RACECHECK makes every lane of a warp arrive at them, where one does so for all otherwise.
    if [ "$tool" = racecheck ]; then export CLEBSCH_RACECHECK=1; else unset CLEBSCH_RACECHECK; fi
    CLEBSCH_TEST_REPETITIONS=${CLEBSCH_TEST_REPETITIONS:-6} "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 8 "$program" \
        -tc='random polynomials and*,random channel-wise*,16-bit storage*,deterministic: random*,deterministic: no edges*,random programs run*,tapes and matrix*' || status=1
done
exit $status
