#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains every combination of the grid (tests/model/grid_test.cpp) on CPU ranks and prints how many there were.
#   tests/model/whole_grid.sh [build folder]      (build/release by default)
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${1:-build/release}/bin/test_model_grid
[ -x "$program" ] || { echo "There is no $program: build the target test_model_grid, or name a build folder." >&2; exit 2; }
began=$(date +%s)
SHARDSCOPE_LONG_TESTS=1 "$program" --gtest_filter='WholeGrid.*:Grid.*'
echo "$(($(date +%s) - began)) s"
