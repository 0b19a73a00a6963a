#!/bin/sh
# What an installation promises: it is found by CMake and by pkg-config, shows the C interface's symbols only, needs the C and C++ run-time
# libraries only, and is small.
# check.sh CMAKE GENERATOR MAKE-PROGRAM CXX BUILD LIBRARY-DIRECTORY (lib, lib/x86_64-linux-gnu, ...)
set -eu
cmake=$1 generator=$2 make=$3 cxx=$4 build=$5 libdir=$6
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; fail "cmake --install failed"; }
library=$work/prefix/$libdir/libclebsch.so
[ -e "$library" ] || fail "expected $libdir/libclebsch.so, got $(cd "$work/prefix" && find . -name 'libclebsch*')"
"$work/prefix/bin/clebsch" --version || fail "the installed program does not run"

for header in "$work"/prefix/include/clebsch/*.hpp; do
    echo "#include <clebsch/${header##*/}>" >"$work/alone.cpp"
    "$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I"$work/prefix/include" "$work/alone.cpp" || fail "${header##*/} does not stand alone"
done

configure() { "$cmake" -G "$generator" -DCMAKE_MAKE_PROGRAM="$make" -DCMAKE_CXX_COMPILER="$cxx" "$@" >"$work/log" 2>&1; }
configure -S "$here" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" &&
    "$cmake" --build "$work/consumer" >>"$work/log" 2>&1 || { cat "$work/log"; fail "find_package(clebsch) did not lead to a program"; }
"$work/consumer/consumer" || fail "the program built with CMake failed"
"$work/consumer/consumer_c" || fail "the C program built with CMake failed with code $?"

# docs/cpp.md, followed to the letter: its project, its program, and what it says that prints.
page=$here/../../docs/cpp.md
mkdir "$work/mine"
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$page" | sed '/^```/d'; }
block cmake >"$work/mine/CMakeLists.txt"
block cpp >"$work/mine/mine.cpp"
configure -S "$work/mine" -B "$work/mine/build" -DCMAKE_PREFIX_PATH="$work/prefix" &&
    "$cmake" --build "$work/mine/build" >>"$work/log" 2>&1 || { cat "$work/log"; fail "the project of docs/cpp.md was not built"; }
"$work/mine/build/mine" >"$work/printed" || fail "the program of docs/cpp.md failed"
[ "$(wc -l <"$work/printed")" = 2 ] || fail "the program of docs/cpp.md printed $(cat "$work/printed")"
while read -r line; do grep -qF "    $line" "$page" || fail "docs/cpp.md does not say: $line"; done <"$work/printed"

if command -v pkg-config >/dev/null; then
    # Moved: a package file must not remember where it was built or installed.
    mv "$work/prefix" "$work/moved"
    flags=$(PKG_CONFIG_PATH=$work/moved/$libdir/pkgconfig pkg-config --cflags --libs clebsch) || fail "pkg-config does not find clebsch"
    # shellcheck disable=SC2086
    "$cxx" -std=c++20 "$here/consumer.cpp" $flags -Wl,-rpath,"$work/moved/$libdir" -o "$work/by-pkg-config" || fail "pkg-config's flags are wrong: $flags"
    "$work/by-pkg-config" || fail "the program built with pkg-config failed"
    library=$work/moved/$libdir/libclebsch.so

    # The prefix is found from library folders of any depth.
    for deep in lib lib64 lib/x86_64-linux-gnu; do
        configure -S "$here/../.." -B "$work/deep" -DCMAKE_INSTALL_LIBDIR=$deep -DCLEBSCH_BUILD_TESTS=OFF -DCLEBSCH_BUILD_TOOL=OFF || { cat "$work/log"; fail "could not configure for $deep"; }
        mkdir -p "$work/there/$deep/pkgconfig"
        cp "$work/deep/src/clebsch.pc" "$work/there/$deep/pkgconfig"
        prefix=$(PKG_CONFIG_PATH=$work/there/$deep/pkgconfig pkg-config --variable=prefix clebsch)
        [ "$(cd "$prefix" && pwd)" = "$work/there" ] || fail "$deep/pkgconfig/clebsch.pc says its prefix is $prefix"
    done
else
    echo "install: pkg-config is not installed here; its file was NOT tested"
fi

others=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^clebsch_' || true)
[ -z "$others" ] || fail "symbols beyond the C interface: $others"
declared=$(sed -n 's/^CLEBSCH_API .*[ *]\(clebsch_[a-z0-9_]*\)(.*/\1/p' "$here/../../include/clebsch/clebsch.h" | sort)
[ "$declared" = "$(nm -D --defined-only "$library" | awk '{print $3}' | sort)" ] || fail "clebsch.h and the library's symbols differ"
needed=$(objdump -p "$library" | awk '/NEEDED/ {print $2}' | grep -Ev '^(libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s|ld-linux.*)\.so' || true)
[ -z "$needed" ] || fail "libraries beyond the C and C++ run time: $needed"
strip -o "$work/stripped" "$library"
image=$(cat "$build/src/table_kernel/table.fatbin" 2>/dev/null | wc -c) # of a build with nvcc
bytes=$(($(wc -c <"$work/stripped") - image))
# What is shipped is GCC 12's; Clang 14's is a twentieth larger, GCC 13's an eighth.
case $("$cxx" -dumpfullversion 2>/dev/null) in 12.*) limit=5000000 ;; *) limit=6000000 ;; esac
[ "$bytes" -lt $limit ] || fail "expected less than $limit bytes stripped, without the GPU kernel compiled here, got $bytes"
echo "install: stripped library of $bytes bytes"
