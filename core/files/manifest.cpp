// SPDX-License-Identifier: Apache-2.0
#include "core/files/manifest.h"

#include "core/files/checksum.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

namespace shardscope::files {

using nlohmann::json;

int64_t TensorEntry::elements() const
{
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

static json toJson(const BucketEntry &bucket)
{
    json tensors = json::array();
    for (const TensorEntry &tensor : bucket.tensors)
        tensors.push_back({{"name", tensor.name}, {"shape", tensor.sizes}, {"offset_elements", tensor.offsetElements}});
    return {{"name", bucket.name},
            {"dtype", bucket.dtype},
            {"padded_elements", bucket.paddedElements},
            {"slice_elements", bucket.sliceElements},
            {"states", bucket.states},
            {"tensors", std::move(tensors)}};
}

static json toJson(const FileEntry &file)
{
    json sections = json::array();
    for (const SectionEntry &section : file.sections)
        sections.push_back({{"bucket", section.bucket},
                            {"state", section.state},
                            {"offset_bytes", section.offsetBytes},
                            {"size_bytes", section.sizeBytes},
                            {"checksum", checksumText(section.checksum)}});
    return {
        {"name", file.name}, {"rank", file.rank}, {"size_bytes", file.sizeBytes}, {"sections", std::move(sections)}};
}

std::string fileEntryToJson(const FileEntry &file)
{
    return toJson(file).dump();
}

std::string manifestToJson(const Manifest &manifest)
{
    json buckets = json::array();
    for (const BucketEntry &bucket : manifest.buckets)
        buckets.push_back(toJson(bucket));
    json files = json::array();
    for (const FileEntry &file : manifest.files)
        files.push_back(toJson(file));
    const json all = {{"format", "shardscope-checkpoint"},
                      {"schema_version", kManifestVersion},
                      {"step", manifest.step},
                      {"world_size", manifest.worldSize},
                      {"created_ns", manifest.createdNs},
                      {"model", manifest.model},
                      {"optimizer", {{"kind", manifest.optimizer}, {"steps", manifest.optimizerSteps}}},
                      {"data",
                       {{"next_sample", manifest.data.nextSample},
                        {"global_batch", manifest.data.globalBatch},
                        {"seed", manifest.data.seed},
                        {"fingerprint", manifest.data.fingerprint},
                        {"sequence_length", manifest.data.sequenceLength},
                        {"validation", manifest.data.validation}}},
                      {"configuration",
                       manifest.configurationJson.empty() ? json::object() : json::parse(manifest.configurationJson)},
                      {"buckets", std::move(buckets)},
                      {"files", std::move(files)}};
    return all.dump(1) + "\n";
}

static FileEntry fileFrom(const json &object)
{
    FileEntry file;
    file.name = object.at("name").get<std::string>();
    file.rank = object.at("rank").get<int32_t>();
    file.sizeBytes = object.at("size_bytes").get<int64_t>();
    for (const json &part : object.at("sections")) {
        SectionEntry section;
        section.bucket = part.at("bucket").get<std::string>();
        section.state = part.at("state").get<std::string>();
        section.offsetBytes = part.at("offset_bytes").get<int64_t>();
        section.sizeBytes = part.at("size_bytes").get<int64_t>();
        const auto checksum = parseChecksum(part.at("checksum").get<std::string>());
        if (!checksum)
            throw std::invalid_argument("a checksum is not of the form xxh3:<16 hexadecimal digits>");
        section.checksum = *checksum;
        file.sections.push_back(std::move(section));
    }
    return file;
}

static BucketEntry bucketFrom(const json &object)
{
    BucketEntry bucket;
    bucket.name = object.at("name").get<std::string>();
    bucket.dtype = object.at("dtype").get<std::string>();
    bucket.paddedElements = object.at("padded_elements").get<int64_t>();
    bucket.sliceElements = object.at("slice_elements").get<int64_t>();
    bucket.states = object.at("states").get<std::vector<std::string>>();
    for (const json &part : object.at("tensors"))
        bucket.tensors.push_back({part.at("name").get<std::string>(), part.at("shape").get<std::vector<int64_t>>(),
                                  part.at("offset_elements").get<int64_t>()});
    return bucket;
}

static Manifest manifestFrom(const json &object)
{
    Manifest manifest;
    manifest.step = object.at("step").get<int64_t>();
    manifest.worldSize = object.at("world_size").get<int32_t>();
    manifest.createdNs = object.at("created_ns").get<int64_t>();
    manifest.model = object.at("model").get<std::string>();
    manifest.optimizer = object.at("optimizer").at("kind").get<std::string>();
    manifest.optimizerSteps = object.at("optimizer").at("steps").get<int64_t>();
    const json &data = object.at("data");
    manifest.data = {data.at("next_sample").get<int64_t>(),
                     data.at("global_batch").get<int64_t>(),
                     data.at("seed").get<int64_t>(),
                     data.at("fingerprint").get<std::string>(),
                     data.at("sequence_length").get<int64_t>(),
                     data.at("validation").get<double>()};
    manifest.configurationJson = object.at("configuration").dump();
    for (const json &part : object.at("buckets"))
        manifest.buckets.push_back(bucketFrom(part));
    for (const json &part : object.at("files"))
        manifest.files.push_back(fileFrom(part));
    return manifest;
}

/// Empty, or what contradicts what.
static std::string contradictionIn(const Manifest &manifest)
{
    if (manifest.worldSize < 1 || manifest.files.size() != static_cast<size_t>(manifest.worldSize))
        return fmt::format("it lists {} rank files for a world size of {}", manifest.files.size(), manifest.worldSize);
    for (const BucketEntry &bucket : manifest.buckets) {
        if (bucket.sliceElements < 0 || bucket.paddedElements < 0 || bucket.sliceElements > bucket.paddedElements ||
            bucket.paddedElements / manifest.worldSize != bucket.sliceElements ||
            bucket.paddedElements % manifest.worldSize != 0)
            return fmt::format("bucket {} of {} elements is not {} slices of {}", bucket.name, bucket.paddedElements,
                               manifest.worldSize, bucket.sliceElements);
        for (const TensorEntry &tensor : bucket.tensors) {
            if (tensor.offsetElements < 0 || tensor.elements() < 0 ||
                tensor.offsetElements > bucket.paddedElements - tensor.elements())
                return fmt::format("{} reaches out of its bucket {}", tensor.name, bucket.name);
        }
    }
    for (size_t i = 0; i < manifest.files.size(); ++i) {
        const FileEntry &file = manifest.files[i];
        if (file.rank != static_cast<int32_t>(i))
            return fmt::format("its file {} is rank {}'s", i, file.rank);
        if (file.name.empty() || file.name.find('/') != std::string::npos || file.name.front() == '.')
            return fmt::format("'{}' is no name of a rank's file", file.name);
        size_t index = 0;
        for (const BucketEntry &bucket : manifest.buckets) {
            for (const std::string &state : bucket.states) {
                if (index == file.sections.size() || file.sections[index].bucket != bucket.name ||
                    file.sections[index].state != state)
                    return fmt::format("{} lacks {} of bucket {}", file.name, state, bucket.name);
                const SectionEntry &section = file.sections[index++];
                if (section.offsetBytes < 0 || section.sizeBytes < 0 || section.sizeBytes > file.sizeBytes ||
                    section.offsetBytes > file.sizeBytes - section.sizeBytes)
                    return fmt::format("{} of bucket {} reaches out of {}", state, bucket.name, file.name);
            }
        }
        if (index != file.sections.size())
            return fmt::format("{} has sections of no bucket", file.name);
    }
    return {};
}

Result<FileEntry> parseFileEntry(std::string_view text)
{
    try {
        return fileFrom(json::parse(text));
    } catch (const std::exception &error) {
        return fail("A rank's answer on its checkpoint file can't be read: {}.", error.what());
    }
}

Result<Manifest> parseManifest(std::string_view text, std::string_view where)
{
    Manifest manifest;
    try {
        const json object = json::parse(text);
        if (object.value("format", "") != "shardscope-checkpoint")
            return fail("{} is no manifest of a Shardscope checkpoint.", where);
        const int64_t version = object.at("schema_version").get<int64_t>();
        if (version > kManifestVersion)
            return fail("{} has version {}; this program reads up to {}. Use the newer Shardscope that wrote it.",
                        where, version, kManifestVersion);
        manifest = manifestFrom(object);
    } catch (const std::exception &error) {
        return fail("{} is damaged: {}. Delete that checkpoint's folder to go on from an earlier one.", where,
                    error.what());
    }
    const std::string contradiction = contradictionIn(manifest);
    if (!contradiction.empty())
        return fail("{} contradicts itself: {}. Delete that checkpoint's folder to go on from an earlier one.", where,
                    contradiction);
    return manifest;
}

} // namespace shardscope::files
