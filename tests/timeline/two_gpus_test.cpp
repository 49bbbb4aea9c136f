// SPDX-License-Identifier: GPL-3.0-or-later
// What the timeline makes of a run on two GPUs, against plain SQL over the same databases.
#include "loaded_recording.h"
#include "ui/timeline/collective_links.h"
#include "ui/timeline/coverage.h"
#include "ui/timeline/lane_painter.h"
#include "ui/timeline/span_details.h"

#include <array>
#include <map>

namespace shardscope::ui::timeline {
namespace {

/// A collective leaves both cards together: each one's last flag has crossed NVLink, about a microsecond. CUPTI puts
/// each card's clock on the host's, which adds an error of some microseconds more.
constexpr int64_t kClocksNs = 10'000;

class TwoGpus : public testing::Test
{
protected:
    void SetUp() override { ASSERT_TRUE(s_loaded.snapshot && s_loaded.snapshot->ranks.size() == 2); }
    static void SetUpTestSuite() { s_loaded = load("two_gpus"); }
    static void TearDownTestSuite() { s_loaded = {}; }

    static const test::PlainSql &sql(size_t rank) { return *s_loaded.sql[rank]; }
    static const Snapshot &snapshot() { return *s_loaded.snapshot; }
    static std::shared_ptr<const Snapshot> sharedSnapshot() { return s_loaded.snapshot; }

private:
    static LoadedRecording s_loaded;
};
LoadedRecording TwoGpus::s_loaded;

TEST_F(TwoGpus, ACollectiveIsOnBothCardsAtTheSameTime)
{
    const int64_t originNs = sql(0).originNs();
    const auto parts =
        sql(0).rows("SELECT sequence, c.started_ns, c.ended_ns, d.started_ns, d.ended_ns FROM collective c "
                    "JOIN other.collective d USING (sequence) WHERE c.operation = d.operation ORDER BY 1");
    ASSERT_EQ(parts.size(), snapshot().collectives->size());
    std::array<int64_t, 2> waitNs{}, expectedNs{};
    for (size_t i = 0; i < parts.size(); ++i) {
        const store::CollectiveCall &call = (*snapshot().collectives)[i];
        SCOPED_TRACE(call.sequence);
        ASSERT_EQ(call.sequence, parts[i][0]);
        const std::vector<SpanRef> spans = linkedSpans(snapshot(), call);
        ASSERT_EQ(spans.size(), 2u);
        for (size_t r = 0; r < 2; ++r) {
            EXPECT_EQ(snapshot().lane(spans[r]).info.name, "communication");
            const SpanRecord record = snapshot().record(spans[r]);
            EXPECT_EQ(record.startNs, parts[i][1 + 2 * r] - originNs);
            EXPECT_EQ(record.endNs(), parts[i][2 + 2 * r] - originNs);
            waitNs[r] += waitOf(record, call).durationNs();
            expectedNs[r] += std::max<int64_t>(0, parts[i][3 - 2 * r] - parts[i][1 + 2 * r]);
        }
        const SpanRecord one = snapshot().record(spans[0]), other = snapshot().record(spans[1]);
        EXPECT_TRUE((TimeRange{one.startNs, one.endNs()}.intersects({other.startNs, other.endNs()})));
        EXPECT_LE(std::abs(one.endNs() - other.endNs()), kClocksNs);
    }
    EXPECT_EQ(waitNs, expectedNs);
    EXPECT_GT(waitNs[0] + waitNs[1], 0);
}

TEST_F(TwoGpus, EachNcclKernelIsOneCollectiveOfItsKind)
{
    static constexpr std::pair<Operation, const char *> kKernels[] = {{Operation::AllGather, "AllGather"},
                                                                      {Operation::ReduceScatter, "ReduceScatter"},
                                                                      {Operation::AllReduce, "AllReduce"}};
    for (uint32_t r = 0; r < 2; ++r) {
        std::map<Operation, int64_t> kernels;
        for (const auto &lane : snapshot().ranks[r].lanes) {
            for (const SpanTrack &track : lane->tracks()) {
                track.forEach(track.begin(), track.end(), [&](SpanPosition p) {
                    const SpanRecord record = track.record(p);
                    const std::string_view name = snapshot().nameOf(record.name);
                    if (!name.starts_with("nccl") || lane->info.kind != LaneKind::Stream)
                        return;
                    EXPECT_EQ(record.category, SpanCategory::Communication);
                    const store::CollectiveCall *call = snapshot().callOf(r, record.collective);
                    ASSERT_TRUE(call) << name;
                    EXPECT_EQ(snapshot().unitOf(record.unit), call->unit);
                    for (const auto &[operation, part] : kKernels)
                        EXPECT_EQ(name.find(part) != std::string_view::npos, operation == call->operation) << name;
                    ++kernels[call->operation];
                });
            }
        }
        for (const auto &[operation, part] : kKernels) {
            EXPECT_EQ(
                kernels[operation],
                sql(r).value(fmt::format("SELECT count(*) FROM collective WHERE operation = '{}'", toText(operation))));
            EXPECT_GT(kernels[operation], 0) << part;
        }
    }
}

TEST_F(TwoGpus, RectanglesOfCollectivesSayWhatTheyDo)
{
    // Each unit's shortest call, in a view of three times its length: it has room for a label on any machine.
    const auto calls =
        sql(0).texts("SELECT unit.name, started_ns, ended_ns, min(ended_ns - started_ns) FROM collective JOIN unit "
                     "USING (unit_id) WHERE operation = 'reduce_scatter' AND ended_ns > started_ns GROUP BY unit.name");
    EXPECT_GE(calls.size(), 3u);
    for (const auto &call : calls) {
        const int64_t startNs = std::stoll(call[1]) - sql(0).originNs(),
                      endNs = std::stoll(call[2]) - sql(0).originNs();
        TimelineState state;
        state.setSnapshot(sharedSnapshot());
        state.setWidth(2'000);
        state.setVisible({2 * startNs - endNs, 2 * endNs - startNs});
        LanePainter painter(state, Colors::of(lightPalette()), {{2'000, 800}, 0, 1});
        painter.paint();
        std::map<QString, int64_t> labels;
        for (const LabelPlace &place : painter.takeLabels()) {
            if (!place.operation)
                EXPECT_FALSE(snapshot().nameOf(place.name).starts_with("nccl")) << snapshot().nameOf(place.name);
            else
                ++labels[labelOf(snapshot(), place.name, place.unit, place.operation)];
        }
        EXPECT_GE(labels[QStringLiteral("Reduce-scatter %1").arg(QString::fromStdString(call[0]))], 1) << call[0];
    }
    const auto &names = snapshot().catalog->names;
    const auto nameOf = [&names](std::string_view text) {
        return static_cast<int32_t>(std::find(names.begin(), names.end(), text) - names.begin());
    };
    const QString unit = QString::fromStdString(snapshot().catalog->units.at(1).name);
    EXPECT_EQ(briefLabelOf(snapshot(), nameOf("forward"), 1, std::nullopt), unit);
    EXPECT_EQ(briefLabelOf(snapshot(), nameOf("attention"), 1, std::nullopt), QStringLiteral("attention"));
    EXPECT_EQ(briefLabelOf(snapshot(), nameOf("cudaLaunchKernel"), 1, std::nullopt),
              QStringLiteral("cudaLaunchKernel"));
    EXPECT_EQ(briefLabelOf(snapshot(), kNone, 1, Operation::AllGather), unit);
    const store::CollectiveCall &call = snapshot().collectives->at(1);
    const SpanDetails details = detailsOf(snapshot(), linkedSpans(snapshot(), call).front());
    EXPECT_EQ(details.title, QStringLiteral("All-gather %1").arg(QString::fromStdString(call.unit)));
    EXPECT_TRUE(details.facts.front().second.startsWith(QLatin1String("nccl"))); // the kernel's own name is there too
}

} // namespace
} // namespace shardscope::ui::timeline
