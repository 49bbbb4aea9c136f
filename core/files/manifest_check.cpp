// SPDX-License-Identifier: Apache-2.0
// Does a checkpoint fit the job that wants to go on from it?
#include "core/files/manifest.h"

#include <fmt/ranges.h>
#include <map>

namespace shardscope::files {

using Differences = std::vector<std::string>;

static void compareTensors(const BucketEntry &stored, const BucketEntry &expected, Differences &differences)
{
    std::map<std::string, const TensorEntry *> byName;
    for (const TensorEntry &tensor : stored.tensors)
        byName.emplace(tensor.name, &tensor);
    for (const TensorEntry &tensor : expected.tensors) {
        const auto found = byName.find(tensor.name);
        if (found == byName.end()) {
            differences.push_back(fmt::format("{} is missing in it", tensor.name));
            continue;
        }
        const TensorEntry &other = *found->second;
        if (other.sizes != tensor.sizes)
            differences.push_back(fmt::format("{} has shape [{}] in it, [{}] in this model", tensor.name,
                                              fmt::join(other.sizes, ", "), fmt::join(tensor.sizes, ", ")));
        else if (other.offsetElements != tensor.offsetElements)
            differences.push_back(fmt::format("{} lies at another place of bucket {}", tensor.name, stored.name));
        byName.erase(found);
    }
    for (const auto &[name, tensor] : byName)
        differences.push_back(fmt::format("{} is not in this model", name));
}

static void compareBuckets(const Manifest &manifest, const Expectation &expected, Differences &differences)
{
    std::map<std::string, const BucketEntry *> byName;
    for (const BucketEntry &bucket : manifest.buckets)
        byName.emplace(bucket.name, &bucket);
    for (const BucketEntry &bucket : expected.buckets) {
        const auto found = byName.find(bucket.name);
        if (found == byName.end()) {
            differences.push_back(fmt::format("unit {} is missing in it", bucket.name));
            continue;
        }
        const BucketEntry &stored = *found->second;
        compareTensors(stored, bucket, differences);
        if (stored.dtype != bucket.dtype)
            differences.push_back(fmt::format("unit {} is {} in it, {} here", bucket.name, stored.dtype, bucket.dtype));
        if (manifest.worldSize == expected.worldSize && stored.paddedElements != bucket.paddedElements)
            differences.push_back(fmt::format("unit {} is padded to {} elements in it, to {} here", bucket.name,
                                              stored.paddedElements, bucket.paddedElements));
        if (manifest.optimizer == expected.optimizer && stored.states != bucket.states)
            differences.push_back(fmt::format("unit {} has the states {} in it, {} here", bucket.name,
                                              fmt::join(stored.states, ", "), fmt::join(bucket.states, ", ")));
        byName.erase(found);
    }
    for (const auto &[name, bucket] : byName)
        differences.push_back(fmt::format("unit {} is not in this model", name));
}

Result<> checkFits(const Manifest &manifest, const Expectation &expected, std::string_view where)
{
    Differences differences;
    if (manifest.worldSize != expected.worldSize)
        differences.push_back(fmt::format("it was written by {} ranks, this job has {} (give --ranks {})",
                                          manifest.worldSize, expected.worldSize, manifest.worldSize));
    if (manifest.optimizer != expected.optimizer)
        differences.push_back(fmt::format("its optimizer is {}, this job's {} (give --set optimizer.kind={})",
                                          manifest.optimizer, expected.optimizer, manifest.optimizer));
    if (manifest.data.globalBatch != expected.data.globalBatch)
        differences.push_back(fmt::format("its global batch is {}, this job's {} (give --set train.global_batch={})",
                                          manifest.data.globalBatch, expected.data.globalBatch,
                                          manifest.data.globalBatch));
    if (manifest.data.seed != expected.data.seed)
        differences.push_back(fmt::format("its seed is {}, this job's {} (give --set train.seed={})",
                                          manifest.data.seed, expected.data.seed, manifest.data.seed));
    if (manifest.data.sequenceLength != expected.data.sequenceLength)
        differences.push_back(
            fmt::format("its sequences have {} tokens, this job's {} (give --set train.sequence_length={})",
                        manifest.data.sequenceLength, expected.data.sequenceLength, manifest.data.sequenceLength));
    if (manifest.data.validation != expected.data.validation)
        differences.push_back(
            fmt::format("{} of its data is held out, {} of this job's (give --set data.validation={})",
                        manifest.data.validation, expected.data.validation, manifest.data.validation));
    if (manifest.data.fingerprint != expected.data.fingerprint)
        differences.push_back("the data have changed since: give the files that it was trained on in data.path");
    compareBuckets(manifest, expected, differences);
    if (differences.empty())
        return {};
    return fail("Can't go on from {}: {}.", where, fmt::join(differences, "; "));
}

} // namespace shardscope::files
