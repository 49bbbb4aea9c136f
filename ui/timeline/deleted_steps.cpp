// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/deleted_steps.h"

#include "ui/timeline/snapshot.h"

#include <QCoreApplication>
#include <QFontMetricsF>
#include <algorithm>

namespace shardscope::ui::timeline {

/// Touching and overlapping ones made one.
static std::vector<DeletedSteps> united(std::vector<DeletedSteps> parts)
{
    std::sort(parts.begin(), parts.end(),
              [](const auto &a, const auto &b) { return a.range.startNs < b.range.startNs; });
    std::vector<DeletedSteps> all;
    for (const DeletedSteps &part : parts) {
        if (all.empty() || part.range.startNs > all.back().range.endNs) {
            all.push_back(part);
            continue;
        }
        DeletedSteps &before = all.back();
        before.range.endNs = std::max(before.range.endNs, part.range.endNs);
        before.first = std::min(before.first, part.first);
        before.last = std::max(before.last, part.last);
    }
    return all;
}

static void addDeleted(const std::vector<store::StepInfo> &steps, std::vector<DeletedSteps> &parts)
{
    for (size_t i = 0; i < steps.size();) {
        const size_t first = i;
        while (i < steps.size() && !steps[i].spansKept)
            ++i;
        if (i == first) {
            ++i;
            continue;
        }
        const store::StepInfo &last = steps[i - 1];
        const int64_t endNs = i < steps.size() ? steps[i].startNs : last.endNs.value_or(last.startNs);
        parts.push_back({{steps[first].startNs, endNs}, steps[first].number, last.number});
    }
}

std::vector<DeletedSteps> deletedStepsOf(const std::vector<RankTimeline> &ranks)
{
    std::vector<DeletedSteps> parts;
    for (const RankTimeline &rank : ranks)
        addDeleted(*rank.steps, parts);
    return united(std::move(parts));
}

static QString translated(const char *text)
{
    return QCoreApplication::translate("DeletedSteps", text);
}

static QString numbersOf(const DeletedSteps &steps)
{
    return steps.first == steps.last ? translated("step %1").arg(steps.first)
                                     : translated("steps %1–%2").arg(steps.first).arg(steps.last);
}

QString textOf(const DeletedSteps &steps)
{
    return translated("spans of %1 were not kept (record.keep_steps)").arg(numbersOf(steps));
}

QString textOf(const DeletedSteps &steps, const QFontMetricsF &metrics, double width)
{
    for (const QString &text :
         {textOf(steps), translated("%1: not kept").arg(numbersOf(steps)), numbersOf(steps), QStringLiteral("…")}) {
        if (metrics.horizontalAdvance(text) <= width)
            return text;
    }
    return {};
}

} // namespace shardscope::ui::timeline
