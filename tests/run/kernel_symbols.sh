#!/bin/sh
# Kernel objects of one instruction set may share no code with those of another: the linker keeps one copy of inline functions and templates, perhaps the
# one with instructions the machine lacks (src/run/kernels/instruction_sets.hpp). Fails when an object defines a weak symbol outside its own namespace.
# usage: kernel_symbols.sh NM NAMESPACE OBJECT...
nm=$1
namespace=$2
shift 2
symbols=$("$nm" -C --defined-only "$@") || exit 1
shared=$(echo "$symbols" | grep -E ' [VWu] ' | grep -v "$namespace")
[ -z "$shared" ] && exit 0
echo "shared between instruction sets:"
echo "$shared"
exit 1
