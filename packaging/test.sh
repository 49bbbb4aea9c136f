#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and runs the tests. Options go to ctest: packaging/test.sh -R config
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packaging/setup.sh
packaging/test_wheels.sh
printf '\nTests\n'
exec ctest --preset release --parallel "$(nproc)" "$@"
