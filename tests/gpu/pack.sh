#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what a GPU machine without our build tools needs into .carry/: the stripped worker and GPU tests of a build
# folder, Debian's libraries that they use, and a CTest file that finds them by relative paths. LibTorch and CUDA are not
# packed: tests/gpu/run_all.sh takes those of the machine's own Python (the same pinned version).
#   tests/gpu/pack.sh [BUILD_FOLDER]     (default build/release)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
rm -rf .carry
mkdir -p .carry/bin .carry/lib

# The GPU tests and their programs, as CTest knows them.
ctest --test-dir "$build" -L gpu --show-only=json-v1 | python3 -c '
import json, os, sys
out = open(".carry/CTestTestfile.cmake", "w")
programs = set()
for test in json.load(sys.stdin)["tests"]:
    program = os.path.basename(test["command"][0])
    programs.add(program)
    timeout = next((p["value"] for p in test["properties"] if p["name"] == "TIMEOUT"), 300)
    arguments = " ".join("\"%s\"" % a for a in test["command"][1:])
    out.write("add_test(%s \"bin/%s\" %s)\n" % (test["name"], program, arguments))
    out.write("set_tests_properties(%s PROPERTIES LABELS gpu TIMEOUT %s)\n" % (test["name"], timeout))
open(".carry/programs", "w").write("\n".join(sorted(programs)))'
for program in $(cat .carry/programs) shardscope-worker; do
    [ -x "$build/bin/$program" ] || { echo "no $build/bin/$program" >&2; continue; }
    strip -o ".carry/bin/$program" "$build/bin/$program"
done
# Libraries that come with neither LibTorch's wheels nor a bare system.
for program in .carry/bin/*; do ldd "$program"; done 2>/dev/null \
    | awk '/=> \/(usr\/)?lib/ {print $3}' | grep -vE '/(libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+|ld-linux.*)\.so' \
    | sort -u | while read -r library; do cp -L "$library" .carry/lib/; done
# A third of the size, for a machine that takes little at a time: tar xzf .carry.tgz there.
tar czf .carry.tgz .carry
du -sh .carry .carry.tgz
