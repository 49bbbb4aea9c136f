// SPDX-License-Identifier: Apache-2.0
// What has to be true of a job's recording after it has gone through every mode.
#include "core/config/configuration_file.h"
#include "core/plan/memory_ledger.h"
#include "tests/cli/changing_run.h"

#include <algorithm>
#include <numeric>

namespace shardscope::test {

static int64_t number(const store::SqlValue &value)
{
    return std::get<int64_t>(value);
}

int64_t Held::sum(const Bytes &bytes)
{
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0},
                           [](int64_t sum, const auto &entry) { return sum + entry.second; });
}

double median(std::vector<double> values)
{
    std::ranges::sort(values);
    const size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void ChangingRun::expectAllToBeWell()
{
    expectTheCurveOfAnUntouchedRun();
    for (const int rank : {0, 1}) {
        SCOPED_TRACE(fmt::format("rank {}", rank));
        expectTheLedgersMemory(rank);
        expectRecomputeToSaveActivations(rank);
        expectNothingLeftBehind(rank);
        if (m_device == DeviceKind::Cuda)
            expectReservedMemoryNotToGrow(rank);
    }
    if (m_device == DeviceKind::Cpu) {
        for (const int64_t step : {kStart, firstStep("back") + 1, firstStep("not late") + 1})
            expectGathersAhead(step, true);
        expectGathersAhead(firstStep("late") + 1, false);
    }
    expectEveryChangeRecorded();
    if (m_device == DeviceKind::Cuda)
        expectCopiesToBeOfTheirUnits();
}

std::vector<std::vector<store::SqlValue>> ChangingRun::query(const std::string &sql)
{
    const auto result = m_recording->sql(sql);
    EXPECT_TRUE(result) << result.error().text << "\n" << sql;
    return result ? result->rows : std::vector<std::vector<store::SqlValue>>{};
}

Held ChangingRun::heldAt(int64_t step, int rank)
{
    std::string columns;
    for (const std::string_view category : Names<MemoryCategory>::texts)
        columns += fmt::format(", {}_bytes", category);
    Held held;
    for (const auto &row :
         query(fmt::format("select place{} from memory join step using (process_id, step_id) join process using "
                           "(process_id) where number = {} and rank = {} order by time_ns",
                           columns, step, rank))) {
        const auto place = std::get<std::string>(row[0]);
        Bytes &first = place == "nvme" ? held.file : place == "pinned" ? held.pinned : held.memory;
        for (size_t i = 0; i < kMemoryCategories; ++i) {
            const std::string category(Names<MemoryCategory>::texts[i]);
            first.emplace(category, number(row[i + 1]));
            if (&first == &held.memory)
                held.most[category] = std::max(held.most[category], number(row[i + 1]));
        }
    }
    EXPECT_FALSE(held.memory.empty()) << "no sample of step " << step;
    return held;
}

void ChangingRun::expectTheCurveOfAnUntouchedRun()
{
    const Finished untouched = cli.run(arguments("untouched", options(std::to_string(m_last))));
    ASSERT_EQ(untouched.exitCode, 0) << untouched.errors;
    const std::vector<double> expected = losses("untouched");
    const std::vector<double> found = losses(kName);
    ASSERT_EQ(found.size(), static_cast<size_t>(m_last));
    ASSERT_EQ(expected.size(), found.size());
    double worst = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_NEAR(found[i] / expected[i], 1, 1e-5) << "step " << i + 1;
        worst = std::max(worst, std::abs(found[i] / expected[i] - 1));
    }
    RecordProperty("steps", std::to_string(m_last));
    RecordProperty("largest_difference", fmt::format("{:.1e}", worst));
}

/// As rank 0 has recorded it.
config::RunConfiguration ChangingRun::configurationAt(int64_t step)
{
    const auto rows = query(fmt::format("select full_json from config join process using (process_id) where rank = 0 "
                                        "and first_step <= {} order by first_step desc limit 1",
                                        step));
    config::RunConfiguration configuration;
    const auto applied = config::applyJson(
        configuration, nlohmann::ordered_json::parse(std::get<std::string>(rows.at(0).at(0))), "The recording");
    EXPECT_TRUE(applied) << applied.error().text;
    return configuration;
}

void ChangingRun::expectTheLedgersMemory(int rank)
{
    const config::RunConfiguration start = configurationAt(kStart);
    const auto atStart =
        shapes::planOf(shapes::unitsOf(shapes::presetShape(start.model.preset).value()), start, start.parallel.ranks)
            .value();
    std::vector<std::pair<std::string, int64_t>> steps = {{"the start", kStart}};
    for (const auto &[change, first] : m_made)
        steps.emplace_back(change.name, first + 1);
    for (const auto &[name, step] : steps) {
        SCOPED_TRACE(fmt::format("{}, step {}", name, step));
        const config::RunConfiguration configuration = configurationAt(step);
        const plan::MemoryLedger ledger =
            plan::ledgerOf(shapes::replanned(atStart, configuration).value(), plan::LedgerOptions::from(configuration));
        Held held = heldAt(step, rank);
        EXPECT_EQ(held.memory["parameters"], ledger.atRest.parameters);
        EXPECT_EQ(held.memory["optimizer"], ledger.atRest.optimizer);
        EXPECT_LE(held.most["gathered"], ledger.peak.gathered);
        EXPECT_LE(held.most["gradients"], ledger.peak.gradients);
        EXPECT_GE(Held::sum(held.pinned), ledger.hostBytes);
        EXPECT_GE(Held::sum(held.file), ledger.fileBytes);
    }
}

void ChangingRun::expectRecomputeToSaveActivations(int rank)
{
    const auto activations = [&](const Held &held) { return held.most.at("activations"); };
    const int64_t off = activations(heldAt(kStart, rank));
    const int64_t block = activations(heldUnder("block", rank));
    const int64_t everySecond = activations(heldUnder("every second", rank));
    const int64_t selective = activations(heldUnder("selective", rank));
    EXPECT_LT(block, everySecond);
    EXPECT_LT(everySecond, off);
    EXPECT_LT(block, selective);
    EXPECT_LT(selective, off);
    if (m_device == DeviceKind::Cuda) {
        EXPECT_LT(activations(heldUnder("activations on the host", rank)), off);
    }
}

void ChangingRun::expectNothingLeftBehind(int rank)
{
    const Held start = heldAt(kStart, rank);
    for (const char *transient : {"gathered", "gradients", "activations", "communication"})
        EXPECT_EQ(start.memory.at(transient), 0) << transient;
    const Held back = heldUnder("back", rank);
    EXPECT_EQ(back.memory, start.memory) << "to the byte";
    EXPECT_EQ(back.most.at("activations"), start.most.at("activations"));
    EXPECT_EQ(Held::sum(back.file), 0);
    EXPECT_EQ(Held::sum(back.pinned), Held::sum(start.pinned));
}

/// On a GPU: the host's allocator has no pool, so that what it reserves is what is allocated at that moment.
void ChangingRun::expectReservedMemoryNotToGrow(int rank)
{
    for (size_t i = 0; i < m_made.size(); ++i) {
        const auto &[change, first] = m_made[i];
        const int64_t next = i + 1 < m_made.size() ? m_made[i + 1].second : m_last + 1;
        if (change.stepsAfter <= kSettling)
            continue;
        SCOPED_TRACE(change.name);
        std::map<std::string, int64_t> settled; // by place
        int64_t compared = 0;
        for (const auto &row : query(fmt::format(
                 "select place, number, reserved_bytes, min(time_ns) from memory join step using "
                 "(process_id, step_id) join process using (process_id) where rank = {} and place <> 'host' "
                 "and number >= {} and number < {} group by place, number order by number",
                 rank, first + kSettling, next))) {
            const auto place = std::get<std::string>(row[0]);
            const auto [at, isFirst] = settled.emplace(place, number(row[2]));
            EXPECT_LE(number(row[2]), at->second) << place << " in step " << number(row[1]);
            compared += isFirst ? 0 : 1;
        }
        EXPECT_GE(compared, change.stepsAfter - kSettling);
    }
}

void ChangingRun::expectGathersAhead(int64_t step, bool ahead)
{
    const auto gathers =
        query(fmt::format("select c.phase, later.name, c.enqueued_ns < s.start_ns + s.duration_ns from collective c "
                          "join step on step.step_id = c.step_id join unit later on later.unit_id = c.unit_id "
                          "join unit sooner on sooner.process_id = later.process_id "
                          "and sooner.ordinal = later.ordinal - iif(c.phase = 'forward', 1, -1) "
                          "join span s on s.step_id = c.step_id and s.unit_id = sooner.unit_id and s.phase = c.phase "
                          "join name on name.name_id = s.name_id "
                          "where step.number = {} and c.operation = 'all_gather' and later.kind = 'block' "
                          "and sooner.kind = 'block' and s.category = 'compute' and name.text = c.phase",
                          step));
    std::map<std::string, int> phases;
    for (const auto &row : gathers) {
        ++phases[std::get<std::string>(row[0])];
        EXPECT_EQ(number(row[2]) != 0, ahead)
            << std::get<std::string>(row[1]) << " in " << std::get<std::string>(row[0]) << " of step " << step;
    }
    EXPECT_GT(phases["forward"], 0);
    EXPECT_GT(phases["backward"], 0);
}

void ChangingRun::expectEveryChangeRecorded()
{
    const auto configs = query("select first_step, origin, count(*) from config group by 1, 2 order by 1");
    ASSERT_EQ(configs.size(), 1 + m_made.size());
    for (size_t i = 0; i < m_made.size(); ++i) {
        const auto &[change, first] = m_made[i];
        SCOPED_TRACE(change.name);
        EXPECT_EQ(number(configs[i + 1][0]), first);
        EXPECT_EQ(std::get<std::string>(configs[i + 1][1]), change.isUndo() ? "undo" : "user");
        EXPECT_EQ(number(configs[i + 1][2]), 2) << "on both ranks";
        const auto level = query(fmt::format("select distinct step.level, config.first_step from step join config "
                                             "using (process_id, config_id) where number = {}",
                                             first));
        ASSERT_EQ(level.size(), 1U) << "the ranks agree";
        EXPECT_EQ(std::get<std::string>(level[0][0]), toText(configurationAt(first).record.level));
        EXPECT_EQ(number(level[0][1]), first);
    }
    EXPECT_EQ(number(query("select count(*) from event where kind = 'toggle'")[0][0]),
              static_cast<int64_t>(2 * m_made.size()));
    EXPECT_GT(number(query("select count(*) from allocation")[0][0]), 0);
}

/// Beside NCCL's kernels there are the copies round them, which are their units', and those by which NCCL connects
/// ranks, which are nobody's.
void ChangingRun::expectCopiesToBeOfTheirUnits()
{
    const std::string ofStreams = "from span join lane using (lane_id) where lane.kind = 'stream' and ";
    const std::string ofNccl = "lane.name like 'communication%' and category <> 'communication' and ";
    EXPECT_GT(number(query("select count(*) " + ofStreams + ofNccl + "unit_id is not null")[0][0]), 0);
    for (const auto &row : query(
             "select printf('%s: %d × %s (%s) of %s, level %s, steps %d to %d', lane.name, count(*), name.text, "
             "category, coalesce(phase, 'no phase'), coalesce(step.level, 'none'), min(step.number), max(step.number)) "
             "from span join lane using (lane_id) join name using (name_id) left join step using (step_id) "
             "where lane.kind = 'stream' and " +
             ofNccl + "(unit_id is null or phase is null) group by lane.name, name.text, category, phase, step.level"))
        ADD_FAILURE() << "of no unit: " << std::get<std::string>(row[0]);
    const std::string ofSetUp = "lane.name like 'NCCL set-up%'";
    EXPECT_GT(number(query("select count(*) " + ofStreams + ofSetUp)[0][0]), 0);
    EXPECT_EQ(number(query("select count(*) " + ofStreams + ofSetUp + " and collective_id is not null")[0][0]), 0);
    EXPECT_EQ(number(query("select count(*) " + ofStreams +
                           "collective_id is not null and category = 'copy' and "
                           "lane.name not like 'communication%'")[0][0]),
              0);
}

std::map<std::string, Sides> ChangingRun::figuresAround(const std::string &name)
{
    const int64_t changed = firstStep(name);
    int64_t previous = 0;
    int64_t next = m_last + 1;
    for (const auto &[change, first] : m_made) {
        previous = first < changed ? first : previous;
        next = first > changed ? std::min(next, first) : next;
    }
    std::map<std::string, Sides> figures;
    // Of steps that both ranks have ended; a figure that one of them lacks is none.
    const auto ofBoth = [](const char *figure, const char *column) {
        return fmt::format("iif(count({1}) = 2, {0}, null)", figure, column);
    };
    for (const auto &row :
         query(fmt::format("select number, max(end_ns - start_ns) * 1.0, {}, {} from step group by number "
                           "having count(end_ns) = 2 order by number",
                           ofBoth("max(peak_allocated_bytes) * 1.0", "peak_allocated_bytes"),
                           ofBoth("sum(exposed_communication_ns) / 2.0", "exposed_communication_ns")))) {
        const int64_t step = number(row[0]);
        const bool isBefore = step < changed;
        if (step < (isBefore ? std::max(previous + 3, changed - 100) : changed + 3) || step >= next)
            continue;
        for (const auto &[figure, column] : {std::pair{"step", 1}, {"peak", 2}, {"exposed", 3}}) {
            Sides &sides = figures[figure];
            if (const auto *value = std::get_if<double>(&row[static_cast<size_t>(column)]))
                (isBefore ? sides.before : sides.after).push_back(*value);
        }
    }
    return figures;
}

} // namespace shardscope::test
