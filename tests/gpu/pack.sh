#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what a GPU machine without our build tools needs into .carry/: the stripped worker, command line and GPU tests of
# a build folder, Debian's libraries that they use, and a CTest file that finds them by relative paths. LibTorch and CUDA
# are not packed: tests/gpu/run_all.sh takes those of the machine's own Python (the same pinned version). Qt with what it
# needs lies apart in qt/, and bin/with_qt starts a program with it: Python there keeps its own libraries.
#   tests/gpu/pack.sh [BUILD_FOLDER]     (default build/release)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
rm -rf .carry
mkdir -p .carry/bin .carry/lib .carry/qt/lib .carry/qt/fonts

# The GPU tests and their programs, as CTest knows them.
ctest --test-dir "$build" -L gpu --show-only=json-v1 > .carry/tests.json
programs=$(python3 -c 'import json; print(*{test["command"][0] for test in json.load(open(".carry/tests.json"))["tests"]})')
for program in $programs shardscope-cli shardscope-worker; do
    program=$(basename "$program")
    [ -x "$build/bin/$program" ] || { echo "no $build/bin/$program" >&2; continue; }
    strip -o ".carry/bin/$program" "$build/bin/$program"
done

# Libraries that come with neither LibTorch's wheels nor a bare system.
libraries_of() {
    for file in "$@"; do ldd "$file"; done 2>/dev/null | awk '/=> \/(usr\/)?lib/ {print $3}' \
        | grep -vE '/(libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+|ld-linux.*)\.so' | sort -u
}
uses_qt() { [[ $(ldd "$1" 2>/dev/null) == *libQt6Core* ]]; } # not grep -q: what it leaves unread fails the pipe
with_qt=() without_qt=()
for plugin in platforms/libqoffscreen.so iconengines/libqsvgicon.so imageformats/libqsvg.so; do
    install -D /usr/lib/*/qt6/plugins/"$plugin" ".carry/qt/plugins/$plugin"
    with_qt+=(".carry/qt/plugins/$plugin")
done
for program in .carry/bin/*; do
    if uses_qt "$program"; then with_qt+=("$program"); else without_qt+=("$program"); fi
done
libraries_of "${without_qt[@]}" | while read -r library; do cp -L "$library" .carry/lib/; done
libraries_of "${with_qt[@]}" | while read -r library; do
    [ -e ".carry/lib/$(basename "$library")" ] || cp -L "$library" .carry/qt/lib/
done
cp /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf .carry/qt/fonts/
cat > .carry/qt/fonts/fonts.conf <<'FONTS'
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">.</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
FONTS
cat > .carry/bin/with_qt <<'WITH_QT'
#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# with_qt PROGRAM [ARGUMENT]…: with the Qt that lies here, and no screen.
qt=$(cd "$(dirname "$0")/../qt" && pwd)
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$qt/../lib:$qt/lib"
export QT_PLUGIN_PATH="$qt/plugins" QT_QPA_PLATFORM=offscreen FONTCONFIG_FILE="$qt/fonts/fonts.conf"
exec "$@"
WITH_QT
chmod +x .carry/bin/with_qt
python3 - "${with_qt[@]##*/}" <<'CTEST_FILE'
import json, os, sys
out = open(".carry/CTestTestfile.cmake", "w")
for test in json.load(open(".carry/tests.json"))["tests"]:
    program = os.path.basename(test["command"][0])
    timeout = next((p["value"] for p in test["properties"] if p["name"] == "TIMEOUT"), 300)
    words = (["bin/with_qt"] if program in sys.argv else []) + ["bin/" + program] + test["command"][1:]
    out.write("add_test(%s %s)\n" % (test["name"], " ".join('"%s"' % word for word in words)))
    out.write("set_tests_properties(%s PROPERTIES LABELS gpu TIMEOUT %s SKIP_REGULAR_EXPRESSION \"no CUDA device;is not installed\")\n" % (test["name"], timeout))
CTEST_FILE
# For a machine that takes little at a time: python3 -m tarfile -e .carry.tar.xz there. The dictionary is as large as all
# of it, because most programs hold the same kernels: that makes a sixth of it, without it a third is left.
tar c .carry | xz --lzma2=preset=3,dict=256MiB > .carry.tar.xz
du -sh .carry .carry/lib .carry/qt .carry.tar.xz
