// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/text.h"

#include "core/base/text.h"

#include <QCoreApplication>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace shardscope::ui {

static const QString kNotMeasured = QStringLiteral("—");

static QString tr(const char *text)
{
    return QCoreApplication::translate("shardscope::ui", text);
}

QString bytesText(int64_t bytes)
{
    return QString::fromStdString(formatBytes(bytes));
}

QString durationText(int64_t nanoseconds)
{
    return QString::fromStdString(formatDuration(nanoseconds));
}

QString countText(double count)
{
    return QString::fromStdString(formatCount(count));
}

QString shareText(double share)
{
    return QStringLiteral("%1 %").arg(QString::number(share * 100, 'f', 1));
}

QString bytesText(std::optional<int64_t> bytes)
{
    return bytes ? bytesText(*bytes) : kNotMeasured;
}

QString durationText(std::optional<int64_t> nanoseconds)
{
    return nanoseconds ? durationText(*nanoseconds) : kNotMeasured;
}

QString shareText(std::optional<double> share)
{
    return share ? shareText(*share) : kNotMeasured;
}

QString lossText(std::optional<double> loss)
{
    if (!loss)
        return kNotMeasured;
    return std::isfinite(*loss) ? QString::number(*loss, 'f', 4) : std::isnan(*loss) ? tr("NaN") : tr("infinite");
}

QString timeMarkText(int64_t timeNs, int64_t spacingNs)
{
    if (timeNs == 0)
        return QStringLiteral("0");
    struct Unit
    {
        int64_t ns;
        int digits;
        const char *text;
    };
    static constexpr Unit kUnits[] = {{1'000'000'000, 9, "s"}, {1'000'000, 6, "ms"}, {1000, 3, "µs"}, {1, 0, "ns"}};
    const int64_t size = std::abs(timeNs);
    for (const Unit &unit : kUnits) {
        if (size < unit.ns)
            continue;
        int digits = unit.digits;
        for (int64_t step = spacingNs; digits > 0 && step % 10 == 0; step /= 10)
            --digits;
        const std::string sign = timeNs < 0 ? "-" : "";
        if (digits == 0)
            return QString::fromStdString(fmt::format("{}{} {}", sign, size / unit.ns, unit.text));
        const std::string fraction = fmt::format("{:0{}}", size % unit.ns, unit.digits).substr(0, size_t(digits));
        return QString::fromStdString(fmt::format("{}{}.{} {}", sign, size / unit.ns, fraction, unit.text));
    }
    return QStringLiteral("%1 ns").arg(timeNs);
}

QString farAboveText(std::optional<int64_t> processUsedBytes, std::optional<int64_t> deviceBytes)
{
    QStringList far;
    if (processUsedBytes)
        far << tr("used by the process %1").arg(bytesText(*processUsedBytes));
    if (deviceBytes)
        far << tr("the device's memory %1").arg(bytesText(*deviceBytes));
    return far.isEmpty() ? QString() : tr("Far above, not drawn: %1").arg(far.join(QStringLiteral(", ")));
}

QString nameOf(MemoryCategory category)
{
    switch (category) {
    case MemoryCategory::Parameters:
        return tr("Parameters");
    case MemoryCategory::Gathered:
        return tr("Gathered");
    case MemoryCategory::Gradients:
        return tr("Gradients");
    case MemoryCategory::Optimizer:
        return tr("Optimizer");
    case MemoryCategory::Activations:
        return tr("Activations");
    case MemoryCategory::Communication:
        return tr("Communication");
    case MemoryCategory::Temporary:
        return tr("Temporary");
    case MemoryCategory::Input:
        return tr("Input");
    case MemoryCategory::Other:
        return tr("Other");
    }
    Q_UNREACHABLE();
}

QString nameOf(SpanCategory category)
{
    switch (category) {
    case SpanCategory::Compute:
        return tr("Compute");
    case SpanCategory::Communication:
        return tr("Communication");
    case SpanCategory::Copy:
        return tr("Copy");
    case SpanCategory::Host:
        return tr("Host");
    case SpanCategory::Idle:
        return tr("Idle");
    }
    Q_UNREACHABLE();
}

QString nameOf(Phase phase)
{
    switch (phase) {
    case Phase::Input:
        return tr("Input");
    case Phase::Forward:
        return tr("Forward");
    case Phase::Recompute:
        return tr("Recompute");
    case Phase::Backward:
        return tr("Backward");
    case Phase::Optimizer:
        return tr("Optimizer");
    case Phase::Checkpoint:
        return tr("Checkpoint");
    case Phase::Validate:
        return tr("Validate");
    }
    Q_UNREACHABLE();
}

QString nameOf(Operation operation)
{
    switch (operation) {
    case Operation::AllGather:
        return tr("All-gather");
    case Operation::ReduceScatter:
        return tr("Reduce-scatter");
    case Operation::AllReduce:
        return tr("All-reduce");
    case Operation::Broadcast:
        return tr("Broadcast");
    case Operation::AllToAll:
        return tr("All-to-all");
    case Operation::Send:
        return tr("Send");
    case Operation::Recv:
        return tr("Receive");
    }
    Q_UNREACHABLE();
}

QString nameOf(RunState state)
{
    switch (state) {
    case RunState::Queued:
        return tr("Queued");
    case RunState::Starting:
        return tr("Starting");
    case RunState::Running:
        return tr("Running");
    case RunState::Paused:
        return tr("Paused");
    case RunState::Stopping:
        return tr("Stopping");
    case RunState::Done:
        return tr("Done");
    case RunState::Failed:
        return tr("Failed");
    case RunState::Lost:
        return tr("Lost");
    }
    Q_UNREACHABLE();
}

QString nameOf(Strategy strategy)
{
    switch (strategy) {
    case Strategy::Full:
        return tr("Full (FULL_SHARD, ZeRO-3)");
    case Strategy::GradOp:
        return tr("Gradients and optimizer (SHARD_GRAD_OP, ZeRO-2)");
    case Strategy::None:
        return tr("None (NO_SHARD, DDP)");
    case Strategy::Hybrid:
        return tr("Hybrid (HYBRID_SHARD)");
    }
    Q_UNREACHABLE();
}

} // namespace shardscope::ui
