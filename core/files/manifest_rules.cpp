// SPDX-License-Identifier: Apache-2.0
// Is a manifest whole? What a damaged or hostile one says must not be believed: readers rely on these rules.
#include "core/files/manifest.h"

#include <algorithm>
#include <map>
#include <set>

namespace shardscope::files {

namespace {

using BucketsByName = std::map<std::string_view, const BucketEntry *>;
/// Which ranges of one state of one bucket the files hold.
using SectionsOf = std::map<std::pair<std::string_view, std::string_view>, std::vector<ElementSpan>>;

/// The product of the sizes, or nothing where one is negative or the product too large.
std::optional<int64_t> elementsOf(const std::vector<int64_t> &sizes)
{
    int64_t elements = 1;
    for (const int64_t size : sizes) {
        if (size < 0 || __builtin_mul_overflow(elements, size, &elements))
            return std::nullopt;
    }
    return elements;
}

std::string faultOf(const BucketEntry &bucket, std::set<std::string_view> &tensorNames)
{
    static constexpr int64_t kMaxElements = int64_t{1} << 58; // times 8 bytes is still a number
    if (bucket.paddedElements < 0 || bucket.paddedElements > kMaxElements)
        return fmt::format("bucket {} has {} elements", bucket.name, bucket.paddedElements);
    std::set<std::string_view> states;
    for (const StateEntry &state : bucket.states) {
        if (dtypeBytes(state.dtype) == 0)
            return fmt::format("{} of bucket {} has the unknown dtype {}", state.name, bucket.name, state.dtype);
        if (!states.insert(state.name).second)
            return fmt::format("bucket {} has {} twice", bucket.name, state.name);
    }
    std::vector<const TensorEntry *> inOrder;
    for (const TensorEntry &tensor : bucket.tensors) {
        const auto elements = elementsOf(tensor.sizes);
        if (!elements || tensor.offsetElements < 0 || tensor.offsetElements > bucket.paddedElements ||
            *elements > bucket.paddedElements - tensor.offsetElements)
            return fmt::format("{} reaches out of its bucket {}", tensor.name, bucket.name);
        if (!tensorNames.insert(tensor.name).second)
            return fmt::format("it has {} twice", tensor.name);
        inOrder.push_back(&tensor);
    }
    std::ranges::sort(inOrder, {}, &TensorEntry::offsetElements);
    for (size_t i = 1; i < inOrder.size(); ++i) {
        if (inOrder[i - 1]->inBucket().end > inOrder[i]->offsetElements)
            return fmt::format("{} overlaps {}", inOrder[i]->name, inOrder[i - 1]->name);
    }
    return {};
}

bool reachesOut(int64_t offsetBytes, int64_t sizeBytes, int64_t fileBytes)
{
    return offsetBytes < 0 || sizeBytes < 0 || sizeBytes > fileBytes || offsetBytes > fileBytes - sizeBytes;
}

std::string faultOf(const SectionEntry &section, const FileEntry &file, const BucketsByName &buckets)
{
    const std::string what = fmt::format("{} of bucket {}", section.state, section.bucket);
    const auto bucket = buckets.find(section.bucket);
    const StateEntry *state = bucket == buckets.end() ? nullptr : bucket->second->find(section.state);
    if (!state)
        return fmt::format("{} has {}, which there is none of", file.name, what);
    if (section.elements.begin < 0 || section.elements.begin > section.elements.end ||
        section.elements.end > bucket->second->paddedElements)
        return fmt::format("{} has elements {} to {} of {}, which has {}", file.name, section.elements.begin,
                           section.elements.end, what, bucket->second->paddedElements);
    if (section.sizeBytes != section.elements.size() * dtypeBytes(state->dtype))
        return fmt::format("{} has {} bytes for {} elements {} of {}", file.name, section.sizeBytes,
                           section.elements.size(), state->dtype, what);
    if (reachesOut(section.offsetBytes, section.sizeBytes, file.sizeBytes))
        return fmt::format("{} reaches out of {}", what, file.name);
    if (section.chunkBytes < 1 ||
        static_cast<int64_t>(section.checksums.size()) !=
            section.sizeBytes / section.chunkBytes + (section.sizeBytes % section.chunkBytes != 0))
        return fmt::format("{} has {} checksums for {} in {}", file.name, section.checksums.size(), what,
                           section.sizeBytes);
    return {};
}

std::string faultOf(const FileEntry &file, const BucketsByName &buckets)
{
    if (file.name.empty() || file.name.find('/') != std::string::npos || file.name.front() == '.')
        return fmt::format("'{}' is no name of a rank's file", file.name);
    for (const SectionEntry &section : file.sections) {
        if (std::string fault = faultOf(section, file, buckets); !fault.empty())
            return fault;
    }
    for (const BlobEntry &blob : file.blobs) {
        if (reachesOut(blob.offsetBytes, blob.sizeBytes, file.sizeBytes))
            return fmt::format("{} reaches out of {}", blob.name, file.name);
    }
    return {};
}

std::string faultOfRanks(const Manifest &manifest)
{
    int32_t ranks = 0;
    std::set<std::string_view> names;
    for (const FileEntry &file : manifest.files) {
        if (!names.insert(file.name).second)
            return fmt::format("it lists {} twice", file.name);
        if (file.rank && *file.rank != ranks++)
            return fmt::format("its file {} is rank {}'s", ranks - 1, *file.rank);
        if (!file.rank && manifest.format == CheckpointFormat::Sharded)
            return fmt::format("{} is no rank's", file.name);
    }
    if (manifest.worldSize < 1 || ranks != manifest.worldSize)
        return fmt::format("it lists {} rank files for a world size of {}", ranks, manifest.worldSize);
    return {};
}

/// Every element of every tensor in exactly one section.
std::string faultOfCover(const BucketEntry &bucket, const StateEntry &state, std::vector<ElementSpan> spans)
{
    std::ranges::sort(spans, {}, &ElementSpan::begin);
    std::vector<ElementSpan> covered; // neighbours joined
    for (const ElementSpan &span : spans) {
        if (span.size() == 0)
            continue;
        if (!covered.empty() && span.begin < covered.back().end)
            return fmt::format("its files hold {} of bucket {} twice from element {} on", state.name, bucket.name,
                               span.begin);
        if (!covered.empty() && span.begin == covered.back().end)
            covered.back().end = span.end;
        else
            covered.push_back(span);
    }
    for (const TensorEntry &tensor : bucket.tensors) {
        const ElementSpan wanted = tensor.inBucket();
        const bool there = wanted.size() == 0 || std::ranges::any_of(covered, [&](const ElementSpan &span) {
                               return span.begin <= wanted.begin && wanted.end <= span.end;
                           });
        if (!there)
            return fmt::format("its files lack {} of {} in bucket {}", state.name, tensor.name, bucket.name);
    }
    return {};
}

} // namespace

std::string contradictionIn(const Manifest &manifest)
{
    BucketsByName buckets;
    std::set<std::string_view> tensorNames;
    for (const BucketEntry &bucket : manifest.buckets) {
        if (!buckets.emplace(bucket.name, &bucket).second)
            return fmt::format("it has the bucket {} twice", bucket.name);
        if (std::string fault = faultOf(bucket, tensorNames); !fault.empty())
            return fault;
    }
    if (std::string fault = faultOfRanks(manifest); !fault.empty())
        return fault;
    SectionsOf sections;
    for (const FileEntry &file : manifest.files) {
        if (std::string fault = faultOf(file, buckets); !fault.empty())
            return fault;
        for (const SectionEntry &section : file.sections)
            sections[{section.bucket, section.state}].push_back(section.elements);
    }
    for (const BucketEntry &bucket : manifest.buckets) {
        for (const StateEntry &state : bucket.states) {
            if (std::string fault = faultOfCover(bucket, state, sections[{bucket.name, state.name}]); !fault.empty())
                return fault;
        }
    }
    return {};
}

} // namespace shardscope::files
