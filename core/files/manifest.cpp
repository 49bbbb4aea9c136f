// SPDX-License-Identifier: Apache-2.0
#include "core/files/manifest.h"

#include "core/files/checksum.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

namespace shardscope::files {

using nlohmann::json;

int64_t dtypeBytes(std::string_view dtype)
{
    if (dtype == "fp32")
        return 4;
    return dtype == "bf16" || dtype == "fp16" ? 2 : 0;
}

int64_t TensorEntry::elements() const
{
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

const StateEntry *BucketEntry::find(std::string_view state) const
{
    const auto found = std::ranges::find(states, state, &StateEntry::name);
    return found == states.end() ? nullptr : &*found;
}

static json toJson(const BucketEntry &bucket)
{
    json tensors = json::array();
    for (const TensorEntry &tensor : bucket.tensors)
        tensors.push_back({{"name", tensor.name}, {"shape", tensor.sizes}, {"offset_elements", tensor.offsetElements}});
    json states = json::array();
    for (const StateEntry &state : bucket.states)
        states.push_back({{"name", state.name}, {"dtype", state.dtype}});
    return {{"name", bucket.name},
            {"padded_elements", bucket.paddedElements},
            {"states", std::move(states)},
            {"tensors", std::move(tensors)}};
}

static json toJson(const FileEntry &file)
{
    json sections = json::array();
    for (const SectionEntry &section : file.sections)
        sections.push_back({{"bucket", section.bucket},
                            {"state", section.state},
                            {"elements", {section.elements.begin, section.elements.end}},
                            {"offset_bytes", section.offsetBytes},
                            {"size_bytes", section.sizeBytes},
                            {"chunk_bytes", section.chunkBytes},
                            {"checksums", checksumsText(section.checksums)}});
    json blobs = json::array();
    for (const BlobEntry &blob : file.blobs)
        blobs.push_back({{"name", blob.name},
                         {"offset_bytes", blob.offsetBytes},
                         {"size_bytes", blob.sizeBytes},
                         {"checksum", checksumText(blob.checksum)}});
    return {{"name", file.name},
            {"rank", file.rank ? json(*file.rank) : json(nullptr)},
            {"size_bytes", file.sizeBytes},
            {"sections", std::move(sections)},
            {"blobs", std::move(blobs)}};
}

std::string filesToJson(const std::vector<FileEntry> &files)
{
    json all = json::array();
    for (const FileEntry &file : files)
        all.push_back(toJson(file));
    return all.dump();
}

void addFiles(std::vector<FileEntry> &all, std::vector<FileEntry> more)
{
    for (FileEntry &file : more) {
        const auto known = std::ranges::find(all, file.name, &FileEntry::name);
        if (known == all.end())
            all.push_back(std::move(file));
        else
            std::ranges::move(file.sections, std::back_inserter(known->sections));
    }
}

static json scalerJson(const std::optional<ScalerState> &scaler)
{
    if (!scaler)
        return nullptr;
    return {
        {"scale", scaler->scale}, {"growth_tracker", scaler->growthTracker}, {"skipped_steps", scaler->skippedSteps}};
}

static json shapeJson(const ShapeNumbers &shape)
{
    json object = json::object();
    for (const auto &[name, value] : shape) {
        const auto whole = static_cast<int64_t>(value);
        object[name] = static_cast<double>(whole) == value ? json(whole) : json(value);
    }
    return object;
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
                      {"id", manifest.id},
                      {"layout", toText(manifest.format)},
                      {"step", manifest.step},
                      {"world_size", manifest.worldSize},
                      {"created_ns", manifest.createdNs},
                      {"model", manifest.model},
                      {"shape", shapeJson(manifest.shape)},
                      {"optimizer", {{"kind", manifest.optimizer}, {"steps", manifest.optimizerSteps}}},
                      {"scaler", scalerJson(manifest.scaler)},
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

/// Version 1: a section was slice `rank` of a bucket, with one checksum for all of it.
static SectionEntry sectionFrom(const json &part, std::optional<int32_t> rank)
{
    SectionEntry section;
    section.bucket = part.at("bucket").get<std::string>();
    section.state = part.at("state").get<std::string>();
    section.offsetBytes = part.at("offset_bytes").get<int64_t>();
    section.sizeBytes = part.at("size_bytes").get<int64_t>();
    const bool first = part.contains("checksum");
    const auto text = part.at(first ? "checksum" : "checksums").get<std::string>();
    const auto checksums = parseChecksums(text);
    if (!checksums)
        throw std::invalid_argument("a checksum is not of the form xxh3:<16 hexadecimal digits>");
    section.checksums = *checksums;
    if (first) {
        static constexpr int64_t kElementBytes = 4;
        const int64_t elements = section.sizeBytes / kElementBytes;
        section.elements = {rank.value() * elements, (rank.value() + 1) * elements};
        section.chunkBytes = std::max<int64_t>(section.sizeBytes, 1);
        if (section.sizeBytes == 0)
            section.checksums.clear();
    } else {
        section.elements = {part.at("elements").at(0).get<int64_t>(), part.at("elements").at(1).get<int64_t>()};
        section.chunkBytes = part.at("chunk_bytes").get<int64_t>();
    }
    return section;
}

static BlobEntry blobFrom(const json &part)
{
    const auto checksum = parseChecksum(part.at("checksum").get<std::string>());
    if (!checksum)
        throw std::invalid_argument("a checksum is not of the form xxh3:<16 hexadecimal digits>");
    return {part.at("name").get<std::string>(), part.at("offset_bytes").get<int64_t>(),
            part.at("size_bytes").get<int64_t>(), *checksum};
}

static FileEntry fileFrom(const json &object)
{
    FileEntry file;
    file.name = object.at("name").get<std::string>();
    if (!object.at("rank").is_null())
        file.rank = object.at("rank").get<int32_t>();
    file.sizeBytes = object.at("size_bytes").get<int64_t>();
    for (const json &part : object.at("sections"))
        file.sections.push_back(sectionFrom(part, file.rank));
    if (object.contains("blobs")) {
        for (const json &part : object.at("blobs"))
            file.blobs.push_back(blobFrom(part));
    }
    return file;
}

static BucketEntry bucketFrom(const json &object)
{
    BucketEntry bucket;
    bucket.name = object.at("name").get<std::string>();
    bucket.paddedElements = object.at("padded_elements").get<int64_t>();
    for (const json &state : object.at("states")) {
        if (state.is_string()) // version 1
            bucket.states.push_back({state.get<std::string>(), object.at("dtype").get<std::string>()});
        else
            bucket.states.push_back({state.at("name").get<std::string>(), state.at("dtype").get<std::string>()});
    }
    for (const json &part : object.at("tensors"))
        bucket.tensors.push_back({part.at("name").get<std::string>(), part.at("shape").get<std::vector<int64_t>>(),
                                  part.at("offset_elements").get<int64_t>()});
    return bucket;
}

static DataPosition dataFrom(const json &data)
{
    return {data.at("next_sample").get<int64_t>(),
            data.at("global_batch").get<int64_t>(),
            data.at("seed").get<int64_t>(),
            data.at("fingerprint").get<std::string>(),
            data.at("sequence_length").get<int64_t>(),
            data.at("validation").get<double>()};
}

/// What version 2 added.
static void readAdditions(Manifest &manifest, const json &object)
{
    manifest.id = object.at("id").get<std::string>();
    const auto layout = object.at("layout").get<std::string>();
    const auto format = fromText<CheckpointFormat>(layout);
    if (!format)
        throw std::invalid_argument(fmt::format("its layout is '{}'", layout));
    manifest.format = *format;
    manifest.shape = object.at("shape").get<ShapeNumbers>();
    if (const json &scaler = object.at("scaler"); !scaler.is_null())
        manifest.scaler = {scaler.at("scale").get<double>(), scaler.at("growth_tracker").get<int64_t>(),
                           scaler.at("skipped_steps").get<int64_t>()};
}

static Manifest manifestFrom(const json &object, int64_t version)
{
    Manifest manifest;
    if (version >= 2)
        readAdditions(manifest, object);
    manifest.step = object.at("step").get<int64_t>();
    manifest.worldSize = object.at("world_size").get<int32_t>();
    manifest.createdNs = object.at("created_ns").get<int64_t>();
    manifest.model = object.at("model").get<std::string>();
    manifest.optimizer = object.at("optimizer").at("kind").get<std::string>();
    manifest.optimizerSteps = object.at("optimizer").at("steps").get<int64_t>();
    manifest.data = dataFrom(object.at("data"));
    manifest.configurationJson = object.at("configuration").dump();
    for (const json &part : object.at("buckets"))
        manifest.buckets.push_back(bucketFrom(part));
    for (const json &part : object.at("files"))
        manifest.files.push_back(fileFrom(part));
    return manifest;
}

Result<std::vector<FileEntry>> parseFiles(std::string_view text)
{
    try {
        std::vector<FileEntry> files;
        for (const json &part : json::parse(text))
            files.push_back(fileFrom(part));
        return files;
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
        manifest = manifestFrom(object, version);
    } catch (const std::exception &error) {
        return fail("{} is damaged: {}. Delete that checkpoint's folder to use an earlier one.", where, error.what());
    }
    const std::string contradiction = contradictionIn(manifest);
    if (!contradiction.empty())
        return fail("{} contradicts itself: {}. Delete that checkpoint's folder to use an earlier one.", where,
                    contradiction);
    return manifest;
}

} // namespace shardscope::files
