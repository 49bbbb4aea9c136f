// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/span_details.h"

#include "ui/common/text.h"
#include "ui/timeline/collective_links.h"

#include <QCoreApplication>
#include <fmt/format.h>

namespace shardscope::ui::timeline {

namespace {

QString tr(const char *text)
{
    return QCoreApplication::translate("SpanDetails", text);
}

QString rateText(double bytesPerSecond)
{
    return tr("%1/s").arg(bytesText(static_cast<int64_t>(bytesPerSecond)));
}

using Facts = QList<std::pair<QString, QString>>;

void addCollective(const Snapshot &snapshot, const SpanRef &ref, const SpanRecord &record, Facts &facts)
{
    const store::CollectiveCall *call = snapshot.callOf(ref.rank, record.collective);
    if (!call)
        return;
    facts.append({tr("Collective"), tr("%1, number %2 of communicator %3")
                                        .arg(nameOf(call->operation))
                                        .arg(call->sequence)
                                        .arg(fromView(call->communicator))});
    facts.append({tr("Data type"), fromView(call->dtype)});
    facts.append({tr("In, out"), tr("%1, %2").arg(bytesText(call->inputBytes), bytesText(call->outputBytes))});
    if (call->lastStartNs()) {
        facts.append({tr("Waited for the last rank"), durationText(waitOf(record, *call).durationNs())});
        facts.append({tr("Transfer"), durationText(call->transferNs())});
    } else {
        facts.append({tr("Waited for the last rank"), tr("not known: a rank has not started it, or is missing")});
    }
    if (const auto bandwidth = bandwidthOf(*call)) {
        facts.append({tr("Algorithm bandwidth"), rateText(bandwidth->algorithmBytesPerSecond)});
        facts.append({tr("Bus bandwidth"), rateText(bandwidth->busBytesPerSecond)});
    }
    if (!call->operationsAgree)
        facts.append({tr("Warning"), tr("the ranks call different operations here")});
}

/// How much of a communication span no computation hides.
void addExposed(const Snapshot &snapshot, const SpanRef &ref, const SpanRecord &record, Facts &facts)
{
    if (record.category != SpanCategory::Communication || snapshot.lane(ref).info.kind == LaneKind::Phase)
        return;
    const Busy busy = snapshot.ranks[ref.rank].activity->exclusive.busyIn({record.startNs, record.endNs()});
    facts.append({tr("Exposed"), durationText(busy[SpanCategory::Communication])});
}

/// By names, because ids are local to a file and change where files are merged.
QString sqlOf(const Snapshot &snapshot, const SpanRef &ref, const SpanRecord &record)
{
    std::string lane = snapshot.lane(ref).info.name;
    for (size_t i = lane.find('\''); i != std::string::npos; i = lane.find('\'', i + 2))
        lane.insert(i, 1, '\'');
    const RankTimeline &rank = snapshot.ranks[ref.rank];
    const std::string whose = rank.rank
                                  ? fmt::format("process.attempt = {} AND process.rank = {}", rank.attempt, *rank.rank)
                                  : fmt::format("process.attempt = {}", rank.attempt);
    return QString::fromStdString(fmt::format("SELECT name.text AS name, span.* FROM span\n"
                                              "JOIN lane ON lane.lane_id = span.lane_id\n"
                                              "JOIN process ON process.process_id = lane.process_id\n"
                                              "JOIN name ON name.name_id = span.name_id\n"
                                              "WHERE {} AND lane.name = '{}'\n"
                                              "AND span.start_ns = {} AND span.duration_ns {}",
                                              whose, lane, record.startNs + snapshot.catalog->originNs,
                                              record.open ? "IS NULL" : fmt::format("= {}", record.durationNs)));
}

} // namespace

QString labelOf(const Snapshot &snapshot, int32_t nameIndex, int32_t unitIndex, std::optional<Operation> operation)
{
    const QString name = operation ? nameOf(*operation) : fromView(snapshot.nameOf(nameIndex));
    const QString unit = fromView(snapshot.unitOf(unitIndex));
    return unit.isEmpty() || name.contains(unit) ? name : name + QLatin1Char(' ') + unit;
}

QString briefLabelOf(const Snapshot &snapshot, int32_t name, int32_t unit, std::optional<Operation> operation)
{
    const std::string_view text = snapshot.nameOf(name);
    const bool bracket = operation || fromText<Phase>(text);
    return fromView(bracket ? snapshot.unitOf(unit) : text);
}

SpanDetails detailsOf(const Snapshot &snapshot, const SpanRef &ref)
{
    const SpanRecord record = snapshot.record(ref);
    SpanDetails details;
    const store::CollectiveCall *call =
        record.category == SpanCategory::Communication ? snapshot.callOf(ref.rank, record.collective) : nullptr;
    details.title = labelOf(snapshot, record.name, record.unit, call ? std::optional(call->operation) : std::nullopt);
    Facts &facts = details.facts;
    facts.append({tr("Name"), fromView(snapshot.nameOf(record.name))});
    facts.append({tr("Where"), tr("%1, %2").arg(QString::fromStdString(labelOf(snapshot, snapshot.ranks[ref.rank])),
                                                fromView(snapshot.lane(ref).info.name))});
    if (record.unit != kNone)
        facts.append({tr("Unit"), fromView(snapshot.unitOf(record.unit))});
    facts.append({tr("Category"), nameOf(record.category)});
    if (record.phase)
        facts.append({tr("Phase"), nameOf(*record.phase)});
    if (record.step != kNone)
        facts.append({tr("Step"), QString::number(record.step)});
    facts.append({tr("Start"), timeMarkText(record.startNs, 1)});
    facts.append({tr("Duration"), record.open ? tr("%1 so far").arg(durationText(record.durationNs))
                                              : durationText(record.durationNs)});
    if (record.bytes > 0)
        facts.append({tr("Bytes"), bytesText(record.bytes)});
    if (record.bytes > 0 && record.category == SpanCategory::Copy && record.durationNs > 0)
        facts.append({tr("Bandwidth"),
                      rateText(static_cast<double>(record.bytes) * 1e9 / static_cast<double>(record.durationNs))});
    addExposed(snapshot, ref, record, facts);
    addCollective(snapshot, ref, record, facts);
    details.sql = sqlOf(snapshot, ref, record);
    return details;
}

QString tooltipOf(const Snapshot &snapshot, const SpanRef &ref, uint64_t more)
{
    const SpanDetails details = detailsOf(snapshot, ref);
    QString text = QStringLiteral("<b>%1</b><table>").arg(details.title.toHtmlEscaped());
    for (qsizetype i = 1; i < details.facts.size(); ++i) {
        const auto &[name, value] = details.facts[i];
        text += QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td>%2</td></tr>")
                    .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
    }
    text += QStringLiteral("</table>");
    if (more > 0)
        text += tr("and %1 more under this pixel: zoom in").arg(more);
    return text;
}

} // namespace shardscope::ui::timeline
