#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Are all sources formatted as .clang-format says? Versions of clang-format differ in details, so 14 alone is asked
# (Debian 12's); without it the test is skipped.
set -euo pipefail
cd "$1"
for program in clang-format-14 clang-format; do
  command -v $program >/dev/null && [[ $($program --version) == *"version 14."* ]] && format=$program
done
if [[ -z ${format:-} ]]; then
  echo "Skipped: there is no clang-format 14 on this machine."
  exit 77
fi
find core profiler ui app tests \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) -print0 \
  | xargs -0 "$format" --dry-run -Werror
