// SPDX-License-Identifier: Apache-2.0
// How long a test of widgets waits for what must come. Qt's 5 s are too few on a machine that is busy with something
// else, and longer costs nothing where all is well.
#pragma once

#include <QTest>

namespace shardscope::test {

inline constexpr int kPatienceMs = 60'000;

} // namespace shardscope::test

#undef QTRY_VERIFY
#define QTRY_VERIFY(expression) QTRY_VERIFY_WITH_TIMEOUT((expression), shardscope::test::kPatienceMs)
#undef QTRY_VERIFY2
#define QTRY_VERIFY2(expression, text) QTRY_VERIFY2_WITH_TIMEOUT((expression), (text), shardscope::test::kPatienceMs)
#undef QTRY_COMPARE
#define QTRY_COMPARE(found, expected) QTRY_COMPARE_WITH_TIMEOUT((found), (expected), shardscope::test::kPatienceMs)
