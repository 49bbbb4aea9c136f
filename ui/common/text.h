// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers and vocabulary as QString; the formatting is core/base's, so that the window and the command line agree.
#pragma once

#include "core/base/names.h"

#include <QString>
#include <optional>
#include <string_view>

namespace shardscope::ui {

inline QString fromView(std::string_view text)
{
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

QString bytesText(int64_t bytes);
QString durationText(int64_t nanoseconds);
QString countText(double count);
/// "12.3 %" of a share in 0…1.
QString shareText(double share);
/// A value that need not be there: "—" for not measured.
QString bytesText(std::optional<int64_t> bytes);
QString durationText(std::optional<int64_t> nanoseconds);
QString shareText(std::optional<double> share);
/// A loss or norm with four decimals; "—" where not measured.
QString lossText(std::optional<double> loss);

/// A time on a ruler with as many digits as the marks' spacing needs: "1.250 s", "12.3405 ms". The unit follows the
/// time's own size, so that neighbours read alike; "0" at the origin.
QString timeMarkText(int64_t timeNs, int64_t spacingNs);

/// What a chart leaves out because it lies kFarAbove the rest; empty where nothing does.
QString farAboveText(std::optional<int64_t> processUsedBytes, std::optional<int64_t> deviceBytes = {});

/// Translated names for users; the contract's own words stay in files and exports.
QString nameOf(MemoryCategory category);
QString nameOf(SpanCategory category);
QString nameOf(Phase phase);
QString nameOf(Operation operation);
QString nameOf(RunState state);
QString nameOf(Strategy strategy);

} // namespace shardscope::ui
