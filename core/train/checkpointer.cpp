// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpointer.h"

#include "core/base/clock.h"
#include "core/files/rank_file.h"

#include <spdlog/spdlog.h>
#include <torch/torch.h>

namespace shardscope::train {

Checkpointer::Checkpointer(files::CheckpointFolder folder, JobIdentity identity, int64_t keep, RankExchange &exchange)
    : m_folder(std::move(folder))
    , m_identity(std::move(identity))
    , m_keep(keep)
    , m_exchange(exchange)
{
}

/// The buckets as they lie now, with the states that they have. stateShards() gives the states of a bucket together.
static std::vector<files::BucketEntry> bucketsOf(const std::vector<engine::StateShard> &shards)
{
    std::vector<files::BucketEntry> buckets;
    for (const engine::StateShard &shard : shards) {
        if (buckets.empty() || buckets.back().name != shard.layout->name) {
            files::BucketEntry bucket;
            bucket.name = shard.layout->name;
            bucket.dtype = "fp32";
            bucket.paddedElements = shard.layout->paddedElements;
            bucket.sliceElements = shard.layout->sliceElements;
            for (const engine::ParameterPlace &place : shard.layout->parameters)
                bucket.tensors.push_back({place.shape.name, place.shape.sizes, place.offset});
            buckets.push_back(std::move(bucket));
        }
        buckets.back().states.push_back(shard.state);
    }
    return buckets;
}

static std::span<std::byte> bytesOf(const at::Tensor &host_S)
{
    return {static_cast<std::byte *>(host_S.mutable_data_ptr()), static_cast<size_t>(host_S.nbytes())};
}

files::Manifest Checkpointer::describe(engine::Engine &engine, int64_t step) const
{
    files::Manifest manifest;
    manifest.step = step;
    manifest.worldSize = m_exchange.worldSize();
    manifest.createdNs = realtimeNs();
    manifest.model = m_identity.model;
    manifest.optimizer = toText(engine.options().optimizer);
    manifest.optimizerSteps = engine.optimizerSteps();
    manifest.data = m_identity.data;
    manifest.data.nextSample = step * m_identity.data.globalBatch;
    manifest.configurationJson = m_identity.configurationJson;
    manifest.buckets = bucketsOf(engine.stateShards());
    return manifest;
}

Result<files::FileEntry> Checkpointer::writeRankFile(engine::Engine &engine, int64_t step) const
{
    auto writer = files::RankFileWriter::create(m_folder.partialPathOf(step), m_exchange.rank());
    if (!writer)
        return tl::unexpected(writer.error());
    for (const engine::StateShard &shard : engine.stateShards()) {
        const at::Tensor host_S = shard.ownedData().cpu().contiguous();
        if (auto appended = writer->append(shard.layout->name, shard.state, bytesOf(host_S)); !appended)
            return tl::unexpected(appended.error());
    }
    return writer->finish();
}

Result<> Checkpointer::commit(engine::Engine &engine, int64_t step, const std::vector<std::string> &fileEntries) const
{
    files::Manifest manifest = describe(engine, step);
    for (const std::string &text : fileEntries) {
        auto entry = files::parseFileEntry(text);
        if (!entry)
            return tl::unexpected(entry.error());
        manifest.files.push_back(std::move(*entry));
    }
    auto committed = m_folder.commit(manifest);
    if (!committed)
        return committed;
    // The new checkpoint is whole; an old one that can't be deleted costs space and nothing else.
    if (auto pruned = m_folder.prune(m_keep); !pruned)
        spdlog::warn("{}", pruned.error().text);
    return {};
}

Result<std::filesystem::path> Checkpointer::write(engine::Engine &engine, int64_t step)
{
    const bool root = m_exchange.rank() == 0;
    auto result = m_exchange.agree("checkpoint begins", root ? m_folder.begin(step) : Result<>{});
    if (result) {
        const auto entry = writeRankFile(engine, step);
        const auto entries =
            m_exchange.allGather("checkpoint files", entry ? files::fileEntryToJson(*entry) : std::string());
        // Agree also after a failed exchange: whoever waits there must hear of it.
        result = m_exchange.agree("checkpoint written", !entry     ? tl::unexpected(entry.error())
                                                        : !entries ? tl::unexpected(entries.error())
                                                                   : Result<>{});
        if (result)
            result = m_exchange.agree("checkpoint whole", root ? commit(engine, step, *entries) : Result<>{});
    }
    if (result)
        return m_folder.pathOf(step);
    if (root)
        m_folder.discard(step);
    return tl::unexpected(result.error());
}

Result<files::Manifest> Checkpointer::checkedManifest(engine::Engine &engine,
                                                      const std::filesystem::path &checkpoint) const
{
    auto manifest = files::CheckpointFolder::readManifest(checkpoint);
    if (!manifest)
        return manifest;
    files::Expectation expected;
    expected.worldSize = m_exchange.worldSize();
    expected.optimizer = toText(engine.options().optimizer);
    expected.data = m_identity.data;
    expected.buckets = bucketsOf(engine.stateShards());
    if (auto fits = files::checkFits(*manifest, expected, checkpoint.string()); !fits)
        return tl::unexpected(fits.error());
    return manifest;
}

/// Fills all that this rank holds of every state: its own slice, or every rank's under `none`.
static Result<> readStates(engine::Engine &engine, const files::Manifest &manifest,
                           const std::filesystem::path &checkpoint)
{
    const std::vector<engine::StateShard> shards = engine.stateShards();
    for (const files::FileEntry &file : manifest.files) {
        std::optional<files::RankFileReader> reader;
        for (const engine::StateShard &shard : shards) {
            const engine::ElementRange slice = shard.layout->sliceOf(file.rank);
            if (slice.size() == 0 || slice.begin < shard.held.begin || slice.end > shard.held.end)
                continue;
            if (!reader) {
                auto opened = files::RankFileReader::open(checkpoint, file);
                if (!opened)
                    return tl::unexpected(opened.error());
                reader = std::move(*opened);
            }
            const at::Tensor host_S = at::empty({slice.size()}, at::kFloat);
            if (auto done = reader->read(shard.layout->name, shard.state, bytesOf(host_S)); !done)
                return done;
            shard.data_S.narrow(0, slice.begin - shard.held.begin, slice.size()).copy_(host_S);
        }
    }
    return {};
}

Result<int64_t> Checkpointer::read(engine::Engine &engine, const std::filesystem::path &checkpoint)
{
    const auto manifest = checkedManifest(engine, checkpoint);
    auto agreed = m_exchange.agree("checkpoint fits", manifest ? Result<>{} : tl::unexpected(manifest.error()));
    if (!agreed)
        return tl::unexpected(agreed.error());
    agreed = m_exchange.agree("checkpoint read", readStates(engine, *manifest, checkpoint));
    if (!agreed)
        return tl::unexpected(agreed.error());
    engine.stateRestored(manifest->optimizerSteps);
    return manifest->step;
}

} // namespace shardscope::train
