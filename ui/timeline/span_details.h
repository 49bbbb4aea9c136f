// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/timeline/snapshot.h"

#include <QList>
#include <QString>

namespace shardscope::ui::timeline {

/// What there is to say of a span, in words and with units. Only what was measured stands in it.
struct SpanDetails
{
    QString title; ///< "all_gather block.3"
    QList<std::pair<QString, QString>> facts;
    QString sql; ///< the row in its database
};

SpanDetails detailsOf(const Snapshot &snapshot, const SpanRef &ref);
/// The tooltip: the same in short. more: how many other spans the pixel holds.
QString tooltipOf(const Snapshot &snapshot, const SpanRef &ref, uint64_t more);
/// What a rectangle says: name and unit; of a collective's own span its operation and unit, whatever its kernel is
/// called.
QString labelOf(const Snapshot &snapshot, int32_t name, int32_t unit, std::optional<Operation> operation);
/// The same where there is little room: of collectives and of brackets round a unit's work ("forward block.3") the
/// unit, of what else is done for it the name. Empty: there is nothing briefer.
QString briefLabelOf(const Snapshot &snapshot, int32_t name, int32_t unit, std::optional<Operation> operation);

} // namespace shardscope::ui::timeline
