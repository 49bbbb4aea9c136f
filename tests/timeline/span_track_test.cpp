// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/timeline/random_spans.h"

#include <gtest/gtest.h>

namespace shardscope::ui::timeline {
namespace {

SpanTrack trackOf(const std::vector<SpanRecord> &records)
{
    SpanTrack track;
    track.append(records);
    return track;
}

std::vector<SpanRecord> recordsIn(const SpanTrack &track)
{
    std::vector<SpanRecord> records;
    track.forEach(track.begin(), track.end(), [&](SpanPosition p) { records.push_back(track.record(p)); });
    return records;
}

TEST(SpanTrack, AnEmptyOneAnswersEverything)
{
    const SpanTrack track;
    EXPECT_EQ(track.size(), 0u);
    EXPECT_EQ(track.firstFrom(5), track.end());
    EXPECT_FALSE(track.at(5));
    EXPECT_EQ(track.busyIn({0, 100}), Busy{});
}

TEST(SpanTrack, KeepsEveryFieldOfEveryRecord)
{
    std::vector<SpanRecord> records = randomStream(10'000, 1);
    records[5000].bytes = 77;
    records[5000].collective = 3;
    records[5000].step = 12;
    records[9999].open = true;
    records[9998].phase = std::nullopt;
    EXPECT_EQ(recordsIn(trackOf(records)), records);
}

TEST(SpanTrack, SearchAgreesWithALoop)
{
    const std::vector<SpanRecord> records = randomStream(9000, 2);
    const SpanTrack track = trackOf(records);
    std::mt19937 random(5);
    for (int i = 0; i < 3000; ++i) {
        const int64_t timeNs = static_cast<int64_t>(random() % (records.back().endNs() + 1000));
        const auto first =
            std::find_if(records.begin(), records.end(), [&](const SpanRecord &r) { return r.startNs >= timeNs; });
        const SpanPosition position = track.firstFrom(timeNs);
        ASSERT_EQ(track.ordinal(position), static_cast<uint64_t>(first - records.begin()));
        const auto covering = std::find_if(records.begin(), records.end(), [&](const SpanRecord &r) {
            return r.startNs <= timeNs && (r.endNs() > timeNs || r.startNs == timeNs);
        });
        ASSERT_EQ(track.at(timeNs).has_value(), covering != records.end());
    }
}

TEST(SpanTrack, BusyTimeAgreesWithALoop)
{
    const std::vector<SpanRecord> records = randomStream(13'000, 3);
    const SpanTrack track = trackOf(records);
    std::mt19937 random(6);
    const int64_t end = records.back().endNs();
    for (int i = 0; i < 400; ++i) {
        const int64_t from = static_cast<int64_t>(random() % end) - 500;
        const TimeRange range{from, from + static_cast<int64_t>(random() % (i % 2 ? 3000 : end))};
        ASSERT_EQ(track.busyIn(range), bruteBusy(records, range)) << range.startNs << " " << range.endNs;
    }
}

TEST(SpanTrack, LongestAndLongerThanAgreeWithALoop)
{
    const std::vector<SpanRecord> records = randomStream(13'000, 4);
    const SpanTrack track = trackOf(records);
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
        size_t from = random() % records.size();
        size_t to = random() % records.size();
        if (from > to)
            std::swap(from, to);
        ++to;
        const auto at = [&](size_t index) {
            return index == records.size()
                       ? track.end()
                       : SpanPosition{uint32_t(index / SpanChunk::kCapacity), uint32_t(index % SpanChunk::kCapacity)};
        };
        const auto longest =
            std::max_element(records.begin() + long(from), records.begin() + long(to),
                             [](const SpanRecord &a, const SpanRecord &b) { return a.durationNs < b.durationNs; });
        ASSERT_EQ(track.ordinal(track.longest(at(from), at(to))), uint64_t(longest - records.begin()));
        std::vector<size_t> wanted, found;
        for (size_t k = from; k < to; ++k) {
            if (records[k].durationNs >= 20'000)
                wanted.push_back(k);
        }
        track.forEachLonger(at(from), at(to), 20'000, [&](SpanPosition p) { found.push_back(track.ordinal(p)); });
        ASSERT_EQ(found, wanted);
    }
}

TEST(SpanTrack, AppendingPieceByPieceIsAppendingAtOnce)
{
    const std::vector<SpanRecord> records = randomStream(20'000, 8);
    SpanTrack pieces;
    std::mt19937 random(9);
    for (size_t i = 0; i < records.size();) {
        const size_t count = std::min<size_t>(random() % 3000, records.size() - i);
        pieces.append(std::span(records).subspan(i, count));
        i += count;
    }
    EXPECT_EQ(recordsIn(pieces), records);
    EXPECT_EQ(pieces.busyIn(pieces.extent()), bruteBusy(records, pieces.extent()));
}

TEST(SpanTrack, EraseTakesWhatStartsInTheRangeAndCopiesKeepTheirs)
{
    std::vector<SpanRecord> records = randomStream(20'000, 10);
    const SpanTrack whole = trackOf(records);
    for (const auto &[from, to] : {std::pair<size_t, size_t>{100, 200}, {0, 5000}, {4000, 13'000}, {15'000, 20'000}}) {
        SpanTrack cut = whole;
        const TimeRange range{records[from].startNs, to == records.size() ? INT64_MAX : records[to].startNs};
        cut.eraseStartingIn(range);
        std::vector<SpanRecord> left;
        for (const SpanRecord &record : records) {
            if (!range.contains(record.startNs))
                left.push_back(record);
        }
        ASSERT_EQ(recordsIn(cut), left);
        ASSERT_EQ(cut.busyIn(whole.extent()), bruteBusy(left, whole.extent()));
        ASSERT_EQ(whole.size(), records.size());
    }
}

TEST(Lane, SubLanesHoldEverySpanAndNoneOverlaps)
{
    const std::vector<SpanRecord> records = randomTangle(5000, 11);
    Lane lane;
    lane.append(records);
    EXPECT_EQ(lane.spanCount(), records.size());
    std::vector<SpanRecord> found;
    for (const SpanTrack &track : lane.tracks()) {
        int64_t freeFrom = INT64_MIN;
        for (const SpanRecord &record : recordsIn(track)) {
            ASSERT_GE(record.startNs, freeFrom);
            freeFrom = record.endNs();
            found.push_back(record);
        }
    }
    std::sort(found.begin(), found.end(), comesBefore);
    EXPECT_EQ(found, records);
    EXPECT_EQ(lane.busyIn({1000, 90'000}), bruteBusy(records, {1000, 90'000}));
}

TEST(Lane, NestedSpansStandBelowTheirParents)
{
    const auto span = [](int64_t start, int64_t duration, int64_t id) {
        SpanRecord record;
        record.startNs = start;
        record.durationNs = duration;
        record.spanId = id;
        return record;
    };
    std::vector<SpanRecord> records{span(0, 100, 1), span(0, 40, 2), span(10, 10, 3), span(40, 60, 4), span(100, 5, 5)};
    std::sort(records.begin(), records.end(), comesBefore);
    Lane lane;
    lane.append(records);
    ASSERT_EQ(lane.tracks().size(), 3u);
    EXPECT_EQ(lane.tracks()[0].size(), 2u);
    EXPECT_EQ(lane.tracks()[1].size(), 2u);
    EXPECT_EQ(lane.tracks()[2].size(), 1u);
}

TEST(Lane, ReadAgainFromAnywhereItIsTheSame)
{
    const std::vector<SpanRecord> records = randomTangle(5000, 12);
    Lane whole;
    whole.append(records);
    Lane live;
    live.append(std::span(records).first(3000));
    const int64_t fromNs = records[2500].startNs;
    live.eraseStartingIn({fromNs, INT64_MAX});
    const auto again = std::lower_bound(records.begin(), records.end(), fromNs,
                                        [](const SpanRecord &r, int64_t t) { return r.startNs < t; });
    live.append(std::span(records).subspan(size_t(again - records.begin())));
    ASSERT_EQ(live.tracks().size(), whole.tracks().size());
    for (size_t i = 0; i < whole.tracks().size(); ++i)
        ASSERT_EQ(recordsIn(live.tracks()[i]), recordsIn(whole.tracks()[i]));
}

} // namespace
} // namespace shardscope::ui::timeline
