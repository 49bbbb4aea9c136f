// SPDX-License-Identifier: Apache-2.0
// The grid of everything that can be set × world size × precision × accumulation, against the run of one rank at the
// same precision. A job changes its settings in place before each step. By default each job goes through rows that hold
// every pair of settings; SHARDSCOPE_LONG_TESTS=1 (tests/model/whole_grid.sh) takes every combination.
#include "tests/model/grid_axes.h"
#include "tests/model/training_curve.h"
#include "tests/support/temporary_folder.h"

#include <ATen/Parallel.h>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <torch/torch.h>

namespace shardscope {

using config::RunConfiguration;
using test::CoveringRows;
using test::Curve;
using test::gridRows;
using test::Row;
using test::TrainingCase;

namespace {

/// Steps of a job. Pairs of the largest two axes alone take 24, on a GPU 28.
constexpr size_t kJobSteps = 28;
constexpr size_t kCudaJobSteps = 36;
constexpr int kWorldSizes[] = {1, 2, 3, 4};

/// What is fixed for as long as a job runs.
struct Job
{
    int worldSize;
    Precision precision;
    int accumulation;
    std::vector<Row> rows; ///< one a step
    DeviceKind device = DeviceKind::Cpu;
};

std::vector<Precision> precisions()
{
    std::vector<Precision> all;
    for (size_t i = 0; i < std::size(Names<Precision>::texts); ++i)
        all.push_back(static_cast<Precision>(i));
    return all;
}

/// More than one micro-batch a step, of a rank's part of the global batch.
int someMicroBatches(int worldSize)
{
    return test::kGlobalBatch / worldSize % 2 == 0 ? 2 : 3;
}

/// One for each world size, precision and accumulation, its rows made by `rows`.
template <typename Rows>
std::vector<Job> jobs(const Rows &rows)
{
    std::vector<Job> all;
    for (const int worldSize : kWorldSizes) {
        CoveringRows grid = gridRows(worldSize);
        for (const Precision precision : precisions()) {
            for (const int accumulation : {1, someMicroBatches(worldSize)}) {
                for (std::vector<Row> &own : rows(grid))
                    all.push_back({worldSize, precision, accumulation, std::move(own)});
            }
        }
    }
    return all;
}

std::vector<Job> cudaJobs()
{
    std::vector<Job> all;
    CoveringRows grid = gridRows(1, DeviceKind::Cuda);
    for (const Precision precision : precisions()) {
        for (const int accumulation : {1, 2})
            all.push_back({1, precision, accumulation, grid.rows(kCudaJobSteps), DeviceKind::Cuda});
    }
    return all;
}

std::vector<Job> pairwiseJobs()
{
    return jobs([](CoveringRows &grid) { return std::vector<std::vector<Row>>{grid.rows(kJobSteps)}; });
}

/// Every row in some job. A row's last value is that of its step's turn, as CoveringRows::rows() has them.
std::vector<Job> allJobs()
{
    return jobs([](const CoveringRows &grid) {
        std::vector<std::vector<Row>> lists(test::gridAxes().back().options.size());
        for (const Row &row : grid.all())
            lists[static_cast<size_t>(row.back())].push_back(row);
        std::vector<std::vector<Row>> all;
        for (size_t step = 0; step < grid.all().size(); ++step) {
            if (step % kJobSteps == 0)
                all.emplace_back();
            // Neighbours differ in many settings, not in one: 5 has no divisor in common with the number of rows.
            const size_t turn = step % lists.size();
            all.back().push_back(lists[turn][(step / lists.size() * 5 + turn * 7) % lists[turn].size()]);
        }
        return all;
    });
}

at::Device deviceOf(DeviceKind kind)
{
    return kind == DeviceKind::Cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

Curve trainOneRank(Precision precision, DeviceKind device)
{
    TrainingCase test;
    test.steps = static_cast<int>(device == DeviceKind::Cuda ? kCudaJobSteps : kJobSteps);
    test.device = deviceOf(device);
    test.configuration.precision.compute = precision;
    test.beforeStep = [](model::Decoder &, RunConfiguration &configuration, int step) {
        const auto &clipping = test::gridAxes().back().options;
        clipping[static_cast<size_t>(step) % clipping.size()].apply(configuration);
    };
    const Curve curve = train(test);
    EXPECT_LT(curve.firstBatchAfter, curve.losses.front()) << "nothing was learned";
    EXPECT_GT(curve.norms.front(), 0.25) << "clipping was to be active";
    return curve;
}

const Curve &oneRank(Precision precision, DeviceKind device)
{
    static std::map<std::pair<Precision, DeviceKind>, Curve> curves;
    const std::pair key(precision, device);
    if (!curves.contains(key))
        curves.emplace(key, trainOneRank(precision, device));
    return curves.at(key);
}

void expectTrainsAsOneRankDoes(const Job &job)
{
    Curve reference = oneRank(job.precision, job.device);
    // The last job of the whole grid is shorter.
    reference.losses.resize(job.rows.size());
    reference.norms.resize(job.rows.size());
    const test::TemporaryFolder folder;
    TrainingCase test;
    test.worldSize = job.worldSize;
    test.device = deviceOf(job.device);
    test.accumulation = job.accumulation;
    test.steps = static_cast<int>(job.rows.size());
    test.configuration.precision.compute = job.precision;
    test.configuration.offload.path = folder.path().string();
    test.configuration.units = test::gridRules();
    test.beforeStep = [&](model::Decoder &decoder, RunConfiguration &configuration, int step) {
        configuration = test::withOptions(test.configuration, job.rows[static_cast<size_t>(step)]);
        decoder.engine().reconfigure(shapes::replanned(decoder.engine().plan(), configuration).value());
    };
    expectSameCurve(train(test), reference, job.precision);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "files of what was offloaded are left";
    if (!testing::Test::HasFailure())
        return;
    for (size_t step = 0; step < job.rows.size(); ++step)
        fmt::print("step {}: {}\n", step, test::textOf(job.rows[step]));
}

std::string nameOf(const Job &job)
{
    return fmt::format("ranks{}_{}_accumulation{}", job.worldSize, toText(job.precision), job.accumulation);
}

} // namespace

TEST(Grid, everyPairOfSettingsIsInEachJob)
{
    std::map<int, size_t> worlds;
    for (const Job &job : pairwiseJobs()) {
        const CoveringRows grid = gridRows(job.worldSize);
        EXPECT_EQ(grid.missingPairs(job.rows), 0u) << nameOf(job);
        EXPECT_GT(grid.missingPairs({job.rows.begin(), job.rows.begin() + 10}), 0u) << "ten rows can't hold them";
        for (size_t step = 0; step < job.rows.size(); ++step)
            EXPECT_EQ(job.rows[step].back(), static_cast<int>(step % 2)) << "as the reference clips";
        ++worlds[job.worldSize];
    }
    for (const Job &job : cudaJobs())
        EXPECT_EQ(gridRows(1, DeviceKind::Cuda).missingPairs(job.rows), 0u) << nameOf(job);
    for (const int worldSize : kWorldSizes)
        EXPECT_EQ(worlds[worldSize], 2 * precisions().size()) << worldSize;
    // 6 strategies × 4 kinds of recompute and so on, and what only makes sense at 4 ranks.
    EXPECT_EQ(gridRows(4).pairs(), 6u * (4 + 2 + 4 + 2 + 2) + 4 * (2 + 4 + 2 + 2) + 2 * (4 + 2 + 2) + 4 * (2 + 2) + 4);
    EXPECT_EQ(gridRows(3).pairs(), 4u * (4 + 2 + 4 + 2 + 2) + 4 * (2 + 4 + 2 + 2) + 2 * (4 + 2 + 2) + 4 * (2 + 2) + 4);
}

TEST(Grid, theWholeHasEveryRowOnceForEachWorldPrecisionAndAccumulation)
{
    std::map<std::string, std::set<Row>> seen;
    size_t rows = 0;
    for (const Job &job : allJobs()) {
        for (const Row &row : job.rows)
            seen[nameOf(job)].insert(row);
        rows += job.rows.size();
        EXPECT_LE(job.rows.size(), kJobSteps);
    }
    size_t different = 0;
    for (const auto &[name, set] : seen)
        different += set.size();
    EXPECT_EQ(different, rows);
    EXPECT_EQ(rows, 2 * precisions().size() * (3 * 4 + 6) * 4 * 2 * 4 * 2 * 2);
}

class GridJob : public testing::TestWithParam<Job>
{
};

TEST_P(GridJob, trainsAsOneRankDoes)
{
    at::set_num_threads(1);
    expectTrainsAsOneRankDoes(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Pairs, GridJob, testing::ValuesIn(pairwiseJobs()),
                         [](const auto &info) { return nameOf(info.param); });

/// One rank on a GPU, from where states and activations can go to the host. More ranks there: tests/gpu/strategies.py.
class GridCuda : public testing::TestWithParam<Job>
{
};

TEST_P(GridCuda, trainsAsOnePlainRankDoes)
{
    if (!torch::cuda::is_available())
        GTEST_SKIP() << "no CUDA device";
    expectTrainsAsOneRankDoes(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Pairs, GridCuda, testing::ValuesIn(cudaJobs()),
                         [](const auto &info) { return nameOf(info.param); });

TEST(WholeGrid, trainsAsOneRankDoes)
{
    if (!std::getenv("SHARDSCOPE_LONG_TESTS"))
        GTEST_SKIP() << "every combination takes minutes: tests/model/whole_grid.sh trains them";
    at::set_num_threads(1);
    std::map<std::string, size_t> trained;
    for (const Job &job : allJobs()) {
        SCOPED_TRACE(nameOf(job));
        expectTrainsAsOneRankDoes(job);
        trained[nameOf(job)] += job.rows.size();
    }
    size_t sum = 0;
    for (const auto &[name, rows] : trained) {
        fmt::print("{}: {} combinations\n", name, rows);
        sum += rows;
    }
    fmt::print("{} combinations trained. Not there: {}\n", sum,
               "hybrid and resharding to 2 at 1 to 3 ranks, where they are another strategy or impossible; offload "
               "cpu, which a CPU device refuses (GridCuda has it)");
}

} // namespace shardscope
