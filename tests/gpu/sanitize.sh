#!/bin/sh
# Small GPU tests under compute-sanitizer: accesses outside arrays, races in shared memory. sh tests/gpu/sanitize.sh PROGRAM [TOOL...]
# TOOL: memcheck; racecheck, of all but stream kernels; racecheck-stream, of those. Where there is no compute-sanitizer or no GPU it says so
# and ends well.
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
    options=
    unset CLEBSCH_RACECHECK
    case $tool in
        # Racecheck follows barriers thread by thread, but not that a warp's own synchronisation comes before the one lane that arrives at
        # them for all, or behind the one lane that waits for all.
        racecheck) options='--kernel-name-exclude kernel_substring=clebsch_stream' ;;
        racecheck-stream) export CLEBSCH_RACECHECK=1 ;; # all lanes arrive and wait
    esac
    # Seeds as in the tests, a few of each kind; a kernel is tens of times slower than without.
    # shellcheck disable=SC2086
    CLEBSCH_TEST_REPETITIONS=${CLEBSCH_TEST_REPETITIONS:-6} "$sanitizer" --tool "${tool%-stream}" $options --error-exitcode 9 --print-limit 8 \
        "$program" \
        -tc='random polynomials and*,random channel-wise*,16-bit storage*,deterministic: random*,deterministic: no edges*,random programs run*,tapes and matrix*' || status=1
done
exit $status
