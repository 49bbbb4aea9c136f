// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/timeline/random_spans.h"
#include "tests/timeline/snapshot_of.h"
#include "ui/timeline/lane_painter.h"

#include <gtest/gtest.h>

namespace shardscope::ui::timeline {
namespace {

struct Canvas
{
    TimelineState state;
    const Colors &colors = Colors::of(lightPalette());
    explicit Canvas(std::shared_ptr<const Snapshot> snapshot)
    {
        state.setSnapshot(std::move(snapshot));
        state.setWidth(1000);
    }
    QImage paint(double scale = 1) { return LanePainter(state, colors, {{1000, 400}, 0, scale}).paint(); }
    int laneY() const { return state.layout().rows()[1].y; }
};

bool columnHas(const QImage &image, int x, int y0, int y1, const QColor &color)
{
    for (int y = y0; y < y1; ++y) {
        if (image.pixel(x, y) == color.rgb())
            return true;
    }
    return false;
}

TEST(LanePainter, WideSpansAreRectanglesInTheirColour)
{
    Canvas canvas(snapshotOf({{laneWith(
        LaneKind::Stream, 1, "s", {spanAt(0, 200'000), spanAt(500'000, 500'000, 1, SpanCategory::Communication)})}}));
    for (const double scale : {1.0, 1.5, 2.0}) {
        const QImage image = canvas.paint(scale);
        EXPECT_EQ(image.width(), int(1000 * scale));
        const int y = int((canvas.laneY() + 5) * scale);
        EXPECT_EQ(image.pixelColor(int(100 * scale), y), canvas.colors.category(SpanCategory::Compute));
        EXPECT_EQ(image.pixelColor(int(800 * scale), y), canvas.colors.category(SpanCategory::Communication));
        EXPECT_EQ(image.pixelColor(int(350 * scale), y), canvas.colors.card);
    }
}

TEST(LanePainter, EverySpanLeavesATraceHoweverNarrow)
{
    std::vector<SpanRecord> records;
    for (int i = 0; i < 100; ++i) // one nanosecond in ten pixels, and one of no length
        records.push_back(spanAt(i * 10'000'000 + 5'000'000, i % 2, 0, SpanCategory::Copy));
    records.push_back(spanAt(999'999'999, 1));
    Canvas canvas(snapshotOf({{laneWith(LaneKind::Stream, 1, "s", records)}}));
    canvas.state.setVisible({0, 1'000'000'000});
    const QImage image = canvas.paint();
    int traces = 0;
    for (const SpanRecord &record : records) {
        const int x = std::min(999, int(canvas.state.axis().xOf(record.startNs)));
        bool trace = false;
        for (int y = canvas.laneY(); y < canvas.laneY() + 14; ++y)
            trace |= image.pixelColor(x, y) != canvas.colors.card && image.pixelColor(x, y) != canvas.colors.grid;
        traces += trace;
    }
    EXPECT_EQ(traces, int(records.size()));
}

TEST(LanePainter, NarrowSpansBesideAWideOneAreNotCovered)
{
    std::vector<SpanRecord> records{spanAt(0, 500'300), spanAt(500'400, 300, 1, SpanCategory::Copy),
                                    spanAt(1'000'000, 1)};
    Canvas canvas(snapshotOf({{laneWith(LaneKind::Stream, 1, "s", records)}}));
    const QImage image = canvas.paint();
    const int x = int(canvas.state.axis().xOf(500'400));
    EXPECT_TRUE(columnHas(image, x, canvas.laneY(), canvas.laneY() + 14, canvas.colors.category(SpanCategory::Copy)));
}

TEST(LanePainter, AHiddenCategoryIsGone)
{
    Canvas canvas(snapshotOf({{laneWith(LaneKind::Stream, 1, "s", {spanAt(0, 1'000'000)})}}));
    canvas.state.setShown(SpanCategory::Compute, false);
    EXPECT_FALSE(columnHas(canvas.paint(), 200, canvas.laneY(), canvas.laneY() + 14,
                           canvas.colors.category(SpanCategory::Compute)));
}

TEST(LanePainter, ExposedCommunicationIsUnderlinedAndHiddenIsNot)
{
    Canvas canvas(snapshotOf(
        {{laneWith(LaneKind::Stream, 1, "compute", {spanAt(0, 500'000)}),
          laneWith(LaneKind::Stream, 2, "communication", {spanAt(0, 1'000'000, 1, SpanCategory::Communication)})}}));
    const QImage image = canvas.paint();
    const Row &row = canvas.state.layout().rows()[2];
    EXPECT_FALSE(columnHas(image, 300, row.y, row.y + row.height, canvas.colors.warning));
    EXPECT_TRUE(columnHas(image, 700, row.y, row.y + row.height, canvas.colors.warning));
}

TEST(LanePainter, TheWaitOfACollectiveIsHatched)
{
    std::vector<std::vector<Lane>> ranks;
    for (int64_t r = 0; r < 2; ++r) {
        SpanRecord record = spanAt(r * 500'000, 1'000'000 - r * 500'000, 1, SpanCategory::Communication);
        record.collective = 7;
        ranks.push_back({laneWith(LaneKind::Stream, 1, "s", {record})});
    }
    auto snapshot = std::make_shared<Snapshot>(*snapshotOf(std::move(ranks)));
    store::CollectiveCall call;
    call.size = 2;
    for (store::Index r = 0; r < 2; ++r) {
        store::CollectivePart part;
        part.process = r;
        part.collectiveId = 7;
        part.startedNs = r * 500'000;
        part.endedNs = 1'000'000;
        call.parts.push_back(part);
    }
    snapshot->collectives = std::make_shared<const std::vector<store::CollectiveCall>>(std::vector{call});
    for (RankTimeline &rank : snapshot->ranks) {
        rank.callOf = std::make_shared<const std::unordered_map<int32_t, uint32_t>>(
            std::unordered_map<int32_t, uint32_t>{{7, 0}});
    }
    Canvas canvas(snapshot);
    const QImage image = canvas.paint();
    const int y = canvas.laneY() + 5;
    int stripes = 0, plain = 0;
    for (int x = 100; x < 400; ++x)
        stripes += image.pixelColor(x, y) == canvas.colors.card;
    for (int x = 600; x < 900; ++x)
        plain += image.pixelColor(x, y) == canvas.colors.card;
    EXPECT_GT(stripes, 100);
    EXPECT_LT(stripes, 200);
    EXPECT_EQ(plain, 0);
}

TEST(LanePainter, LabelsStandInWideRectanglesOnlyAndAreBounded)
{
    std::vector<SpanRecord> records;
    for (int i = 0; i < 20; ++i)
        records.push_back(spanAt(i * 50'000, i % 2 ? 45'000 : 30'000));
    Canvas canvas(snapshotOf({{laneWith(LaneKind::Stream, 1, "s", records)}}));
    canvas.state.setVisible({0, 1'000'000});
    LanePainter painter(canvas.state, canvas.colors, {{1000, 400}, 0, 1});
    painter.paint();
    const auto labels = painter.takeLabels();
    EXPECT_EQ(labels.size(), 10u);
    for (const LabelPlace &label : labels)
        EXPECT_GE(label.width, LanePainter::kLabelPx);
}

} // namespace
} // namespace shardscope::ui::timeline
