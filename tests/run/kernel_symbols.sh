#!/bin/sh
# Kernel objects of one instruction set may share no code with those of another: the linker keeps one copy of inline functions and templates, perhaps the
# one with instructions the machine lacks (src/run/kernels/instruction_sets.hpp). Fails when an object defines a weak symbol outside its own namespace.
# usage: kernel_symbols.sh NAMESPACE OBJECT...
namespace=$1
shift
shared=$(nm -C --defined-only "$@" | grep -E ' [VWu] ' | grep -v "$namespace")
[ -z "$shared" ] && exit 0
echo "shared between instruction sets:"
echo "$shared"
exit 1
