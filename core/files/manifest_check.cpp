// SPDX-License-Identifier: Apache-2.0
// Does a checkpoint fit the job that wants to go on from it?
#include "core/base/text.h"
#include "core/files/manifest.h"

#include <fmt/ranges.h>
#include <set>

namespace shardscope::files {

using Differences = std::vector<std::string>;

namespace {

struct StoredTensor
{
    const TensorEntry *tensor = nullptr;
    const BucketEntry *bucket = nullptr;
};

} // namespace

static void compareTensor(const StoredTensor &stored, const Expectation::Tensor &expected, bool sameOptimizer,
                          Differences &differences)
{
    if (stored.tensor->sizes != expected.sizes) {
        differences.push_back(fmt::format("{} has shape [{}] in it, [{}] in this model", expected.name,
                                          fmt::join(stored.tensor->sizes, ", "), fmt::join(expected.sizes, ", ")));
        return;
    }
    for (size_t i = 0; i < expected.states.size(); ++i) {
        const bool isWeights = i == 0; // another optimizer's moments are said once, not for each tensor
        if (!stored.bucket->find(expected.states[i]) && (isWeights || sameOptimizer))
            differences.push_back(fmt::format("it has no {} of {}", expected.states[i], expected.name));
    }
}

/// By name, whatever buckets they lie in there and here.
static void compareTensors(const Manifest &manifest, const Expectation &expected, Differences &differences)
{
    std::map<std::string_view, StoredTensor> byName;
    for (const BucketEntry &bucket : manifest.buckets) {
        for (const TensorEntry &tensor : bucket.tensors)
            byName.emplace(tensor.name, StoredTensor{&tensor, &bucket});
    }
    for (const Expectation::Tensor &tensor : expected.tensors) {
        const auto found = byName.find(tensor.name);
        if (found == byName.end()) {
            differences.push_back(fmt::format("{} is missing in it", tensor.name));
            continue;
        }
        compareTensor(found->second, tensor, manifest.optimizer == expected.optimizer, differences);
        byName.erase(found);
    }
    for (const auto &[name, tensor] : byName)
        differences.push_back(fmt::format("{} is not in this model", name));
}

/// Models of other numbers may have tensors of the same shapes: 4 heads of 32 or 8 of 16.
std::vector<std::string> modelDifferences(const ShapeNumbers &stored, const ShapeNumbers &expected)
{
    Differences differences;
    if (stored.empty())
        return differences; // written before shapes were
    const auto valueOf = [](const ShapeNumbers &shape, const std::string &name) {
        const auto found = shape.find(name);
        return found == shape.end() ? 0.0 : found->second;
    };
    std::set<std::string> names;
    for (const auto *shape : {&stored, &expected}) {
        for (const auto &[name, value] : *shape)
            names.insert(name);
    }
    for (const std::string &name : names) {
        const double there = valueOf(stored, name);
        const double here = valueOf(expected, name);
        if (there != here)
            differences.push_back(
                fmt::format("its model has {} = {}, this one {}", name, formatDouble(there), formatDouble(here)));
    }
    return differences;
}

static void compareData(const DataPosition &stored, const DataPosition &expected, Differences &differences)
{
    if (stored.seed != expected.seed)
        differences.push_back(fmt::format("its seed is {}, this job's {} (give --set train.seed={})", stored.seed,
                                          expected.seed, stored.seed));
    if (stored.sequenceLength != expected.sequenceLength)
        differences.push_back(
            fmt::format("its sequences have {} tokens, this job's {} (give --set train.sequence_length={})",
                        stored.sequenceLength, expected.sequenceLength, stored.sequenceLength));
    if (stored.validation != expected.validation)
        differences.push_back(
            fmt::format("{} of its data is held out, {} of this job's (give --set data.validation={})",
                        stored.validation, expected.validation, stored.validation));
    if (!expected.fingerprint.empty() && stored.fingerprint != expected.fingerprint)
        differences.push_back("the data have changed since: give the files that it was trained on in data.path");
}

static Differences compareJobs(const Manifest &manifest, const Expectation &expected)
{
    Differences differences;
    if (manifest.optimizer != expected.optimizer)
        differences.push_back(fmt::format("its optimizer is {}, this job's {} (give --set optimizer.kind={})",
                                          manifest.optimizer, expected.optimizer, manifest.optimizer));
    compareData(manifest.data, expected.data, differences);
    for (std::string &difference : modelDifferences(manifest.shape, expected.shape))
        differences.push_back(std::move(difference));
    return differences;
}

static Result<> refusalOf(const Differences &differences, std::string_view where)
{
    if (differences.empty())
        return {};
    return fail("Can't go on from {}: {}.", where, fmt::join(differences, "; "));
}

Result<> checkJobFits(const Manifest &manifest, const Expectation &expected, std::string_view where)
{
    return refusalOf(compareJobs(manifest, expected), where);
}

Result<> checkFits(const Manifest &manifest, const Expectation &expected, std::string_view where)
{
    Differences differences = compareJobs(manifest, expected);
    compareTensors(manifest, expected, differences);
    return refusalOf(differences, where);
}

} // namespace shardscope::files
