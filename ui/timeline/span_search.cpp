// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/span_search.h"

#include <charconv>
#include <cmath>

namespace shardscope::ui::timeline {

namespace {

std::string lower(std::string_view text)
{
    std::string result(text);
    for (char &c : result)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return result;
}

Result<int64_t> durationOf(std::string_view text)
{
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string unit = lower(std::string_view(end, static_cast<size_t>(text.data() + text.size() - end)));
    double scale = 0;
    if (unit == "ns")
        scale = 1;
    else if (unit == "us" || unit == "µs")
        scale = 1e3;
    else if (unit == "ms" || unit.empty())
        scale = 1e6;
    else if (unit == "s")
        scale = 1e9;
    if (error != std::errc{} || scale == 0 || value < 0 || value * scale > 9e18)
        return fail("\">{}\" is no duration. Write >1.5ms, >200us or >2s.", text);
    return std::llround(value * scale);
}

/// Which entries of a list contain the text.
template <typename List, typename TextOf>
std::vector<char> matching(const List &list, const std::string &part, TextOf textOf)
{
    std::vector<char> result(list.size());
    for (size_t i = 0; i < list.size(); ++i)
        result[i] = lower(textOf(list[i])).find(part) != std::string::npos;
    return result;
}

class Searcher
{
public:
    Searcher(const Snapshot &snapshot, const SpanQuery &query, SearchResult &result)
        : m_snapshot(snapshot)
        , m_query(query)
        , m_result(result)
    {
        if (!query.name.empty())
            m_names = matching(snapshot.catalog->names, lower(query.name), [](const std::string &s) { return s; });
        if (!query.unit.empty())
            m_units = matching(snapshot.catalog->units, lower(query.unit), [](const auto &u) { return u.name; });
    }

    void searchTrack(SpanRef ref)
    {
        const SpanTrack &track = m_snapshot.track(ref);
        track.forEachLonger(track.begin(), track.end(), m_query.longerThanNs, [&](SpanPosition p) {
            const SpanChunk &chunk = track.chunk(p);
            if (!matches(m_query.name, m_names, chunk.name(p.index)) ||
                !matches(m_query.unit, m_units, chunk.unit(p.index)))
                return;
            ref.position = p;
            add(chunk.startNs(p.index), ref);
        });
    }

private:
    static bool matches(const std::string &wanted, const std::vector<char> &list, int32_t index)
    {
        return wanted.empty() ||
               (index >= 0 && static_cast<size_t>(index) < list.size() && list[static_cast<size_t>(index)]);
    }

    void add(int64_t startNs, const SpanRef &ref)
    {
        ++m_result.count;
        if (m_result.hits.size() < SearchResult::kMostHits)
            m_result.hits.push_back({startNs, ref});
        const auto length = static_cast<double>(std::max<int64_t>(1, m_snapshot.extent.durationNs()));
        const double share = static_cast<double>(startNs - m_snapshot.extent.startNs) / length;
        const auto bin = static_cast<int64_t>(share * SearchResult::kBins);
        ++m_result.bins[static_cast<size_t>(std::clamp<int64_t>(bin, 0, SearchResult::kBins - 1))];
    }

    const Snapshot &m_snapshot;
    const SpanQuery &m_query;
    SearchResult &m_result;
    std::vector<char> m_names, m_units;
};

} // namespace

Result<SpanQuery> SpanQuery::parse(std::string_view text)
{
    SpanQuery query;
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty())
            continue;
        if (word.front() == '>') {
            auto duration = durationOf(word.substr(1));
            if (!duration)
                return tl::unexpected(duration.error());
            query.longerThanNs = *duration;
        } else if (word.starts_with("unit:")) {
            query.unit = word.substr(5);
        } else {
            query.name += query.name.empty() ? "" : " ";
            query.name += word;
        }
    }
    return query;
}

Result<std::shared_ptr<const SearchResult>> search(std::shared_ptr<const Snapshot> snapshot, const SpanQuery &query,
                                                   const store::CancelToken &cancel)
{
    auto result = std::make_shared<SearchResult>();
    result->snapshot = snapshot;
    result->query = query;
    result->bins.resize(SearchResult::kBins);
    Searcher searcher(*snapshot, query, *result);
    for (uint32_t r = 0; r < snapshot->ranks.size(); ++r) {
        for (uint32_t l = 0; l < snapshot->ranks[r].lanes.size(); ++l) {
            for (uint32_t t = 0; t < snapshot->ranks[r].lanes[l]->tracks().size(); ++t) {
                if (cancel.cancelled())
                    return fail("cancelled");
                searcher.searchTrack({r, l, t, {}});
            }
        }
    }
    std::stable_sort(result->hits.begin(), result->hits.end(),
                     [](const auto &a, const auto &b) { return a.startNs < b.startNs; });
    return std::shared_ptr<const SearchResult>(result);
}

} // namespace shardscope::ui::timeline
