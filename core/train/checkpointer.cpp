// SPDX-License-Identifier: Apache-2.0
#include "core/train/checkpointer.h"

#include "core/base/clock.h"

namespace shardscope::train {

Checkpointer::Checkpointer(files::CheckpointFolder folder, JobIdentity identity, CheckpointOptions options,
                           RankExchange &exchange)
    : m_folder(std::move(folder))
    , m_identity(std::move(identity))
    , m_options(options)
    , m_exchange(exchange)
{
}

CheckpointPlan Checkpointer::planOf(engine::Engine &engine, const StateShards &shards, const LoopState &state) const
{
    CheckpointPlan plan{m_folder, {}, m_options.keep, m_exchange.rank()};
    files::Manifest &manifest = plan.manifest;
    manifest.format = m_options.format;
    manifest.step = state.step;
    manifest.worldSize = m_exchange.worldSize();
    manifest.createdNs = realtimeNs();
    manifest.model = m_identity.model;
    manifest.shape = m_identity.shape;
    manifest.optimizer = toText(engine.options().optimizer);
    manifest.optimizerSteps = engine.optimizerSteps();
    manifest.scaler = state.scaler;
    manifest.data = m_identity.data;
    manifest.data.nextSample = state.nextSample;
    manifest.configurationJson = m_identity.configurationJson;
    manifest.buckets = bucketsOf(shards);
    return plan;
}

Result<std::string> Checkpointer::writePart(engine::Engine &engine, const StateShards &shards,
                                            const CheckpointPlan &plan) const
{
    auto writer = files::PartWriter::create(plan.folder.partialPathOf(plan.step()), plan.part());
    if (!writer)
        return tl::unexpected(writer.error());
    const auto written =
        writeOwned(shards, *writer).and_then([&] { return writeRandomStates(randomStates(engine.device()), *writer); });
    if (!written)
        return tl::unexpected(written.error());
    return writer->finish().map(files::filesToJson);
}

Result<std::filesystem::path> Checkpointer::write(engine::Engine &engine, const LoopState &state)
{
    const bool root = m_exchange.rank() == 0;
    const StateShards shards = engine.stateShards();
    CheckpointPlan plan = planOf(engine, shards, state);
    const auto id = m_exchange.fromRoot("checkpoint id", root ? newCheckpointId() : "");
    plan.manifest.id = id.value_or("");
    Result<> begun = root ? beginCheckpoint(plan) : Result<>{};
    auto result = m_exchange.agree("checkpoint begins", id ? begun : tl::unexpected(id.error()));
    if (result) {
        const auto part = writePart(engine, shards, plan);
        const auto parts = m_exchange.allGather("checkpoint files", part.value_or(""));
        // Agree also after a failed exchange: whoever waits there must hear of it.
        result = m_exchange.agree("checkpoint written", !part    ? tl::unexpected(part.error())
                                                        : !parts ? tl::unexpected(parts.error())
                                                                 : Result<>{});
        if (result)
            result = m_exchange.agree("checkpoint whole", root ? commitCheckpoint(plan, *parts) : Result<>{});
    }
    if (result)
        return plan.path();
    if (root)
        m_folder.discard(state.step);
    return tl::unexpected(result.error());
}

std::string Checkpointer::begin(engine::Engine &engine, const LoopState &state)
{
    const StateShards shards = engine.stateShards();
    m_begunNs = monotonicNs();
    m_pending = std::make_unique<PendingCheckpoint>(
        planOf(engine, shards, state), shards, randomStates(engine.device()), engine.device(), m_exchange, m_begun++);
    return m_pending->start();
}

Checkpointer::Outcome Checkpointer::outcomeOf(Result<> result)
{
    Outcome outcome{m_pending->plan().step(), monotonicNs() - m_begunNs, std::move(result)};
    m_pending.reset();
    return outcome;
}

std::optional<Checkpointer::Outcome> Checkpointer::poll()
{
    if (!m_pending)
        return std::nullopt;
    auto result = m_pending->advance();
    return result ? std::optional(outcomeOf(std::move(*result))) : std::nullopt;
}

std::optional<Checkpointer::Outcome> Checkpointer::finish()
{
    if (!m_pending)
        return std::nullopt;
    return outcomeOf(m_pending->finish());
}

/// Compares, and looks through every byte that this rank will read.
Result<> Checkpointer::check(const StateShards &shards, std::string_view optimizer,
                             Result<files::CheckpointReader> &reader, const std::filesystem::path &checkpoint) const
{
    if (!reader)
        return tl::unexpected(reader.error());
    files::Expectation expected;
    expected.optimizer = optimizer;
    expected.data = m_identity.data;
    expected.shape = m_identity.shape;
    expected.tensors = expectedTensors(shards);
    return files::checkFits(reader->manifest(), expected, checkpoint.string()).and_then([&] {
        return reader->verify(heldParts(shards));
    });
}

Result<LoopState> Checkpointer::read(engine::Engine &engine, const std::filesystem::path &checkpoint)
{
    const StateShards shards = engine.stateShards();
    auto reader = files::CheckpointReader::open(checkpoint);
    auto agreed =
        m_exchange.agree("checkpoint fits", check(shards, toText(engine.options().optimizer), reader, checkpoint));
    if (!agreed)
        return tl::unexpected(agreed.error());
    agreed = m_exchange.agree("checkpoint read", readStates(shards, *reader).and_then([&] {
        return restoreRandomStates(engine.device(), m_exchange.rank(), *reader);
    }));
    if (!agreed)
        return tl::unexpected(agreed.error());
    const files::Manifest &manifest = reader->manifest();
    engine.stateRestored(manifest.optimizerSteps);
    return LoopState{manifest.step, manifest.data.nextSample, manifest.scaler};
}

} // namespace shardscope::train
