// SPDX-License-Identifier: Apache-2.0
#include "core/model/decoder.h"

#include "core/model/ops.h"
#include "core/model/workspace.h"
#include "core/shapes/adapters.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace shardscope::model {

/// Parameter of the embedding unit, and of an untied head, in the order of core/shapes.
static constexpr size_t kEmbeddingWeight = 0;
static constexpr size_t kHeadWeight = 1;

static shapes::ModelPlan planFor(const shapes::ModelShape &shape, const config::RunConfiguration &configuration,
                                 const engine::Communicator &communicator)
{
    auto plan = shapes::planOf(shapes::unitsOf(shape), configuration, communicator.worldSize());
    TORCH_CHECK(plan.has_value(), plan.error().text);
    return std::move(*plan);
}

/// What cuBLAS works in (plan::kProductsBytes on GPUs from 9.0 on) is allocated by LibTorch at a stream's first
/// product, and kept. Taken here it is nobody's; later it would be a part of what the first unit holds for the moment.
static void takeProductsMemory(const shapes::ModelShape &shape, engine::Engine &engine)
{
    if (!engine.device().is_cuda())
        return;
    const c10::cuda::CUDAGuard device(engine.device());
    const observe::MemoryScope memory(engine.observer(), {MemoryCategory::Other, observe::kNoUnit});
    at::cuda::getCurrentCUDABlasHandle();
    // A product with a bias is cuBLASLt's, which may have a MiB of its own.
    if (shape.queryKeyValueBias || shape.outputBias || shape.feedForwardBias)
        at::cuda::getCUDABlasLtWorkspace();
}

Decoder::Decoder(shapes::ModelShape shape, const config::RunConfiguration &configuration,
                 engine::Communicator &communicator, observe::Observer &observer)
    : m_shape(std::move(shape))
    , m_engine(std::make_unique<engine::Engine>(planFor(m_shape, configuration, communicator),
                                                engine::EngineOptions::from(configuration), communicator, observer))
{
    takeProductsMemory(m_shape, *m_engine);
    const shapes::BlockParameters parameters(m_shape);
    const double adapterScale = shapes::adapterScale(configuration);
    m_embedding = 0;
    m_headUnit = static_cast<observe::UnitIndex>(m_engine->unitCount() - 1);
    for (observe::UnitIndex unit = m_embedding + 1; unit < m_headUnit; ++unit)
        m_blocks.emplace_back(*m_engine, unit, parameters,
                              Attention(m_engine->device(), m_engine->computeType(), m_shape.headSize,
                                        m_shape.windowOf(unit - m_embedding - 1)),
                              adapterScale);
    const observe::UnitIndex ofWeight = m_shape.tiedEmbeddings ? m_embedding : m_headUnit;
    m_head = std::make_unique<Head>(*m_engine, m_headUnit, ofWeight,
                                    m_shape.tiedEmbeddings ? kEmbeddingWeight : kHeadWeight, adapterScale);
}

Decoder::~Decoder() = default;

ActivationOffload &Decoder::offload()
{
    if (!m_offload)
        m_offload = std::make_unique<ActivationOffload>(*m_engine);
    return *m_offload;
}

void Decoder::growRopeTables(int64_t positions)
{
    const int64_t have = m_rope.cosine_TH.defined() ? m_rope.cosine_TH.size(0) : 0;
    if (have == positions || (have > positions && ropeTablesGrow(m_shape, have)))
        return;
    const observe::MemoryScope memory(m_engine->observer(), {MemoryCategory::Other, observe::kNoUnit});
    m_rope = ropeTables(m_shape, positions, m_engine->device());
}

PassShape Decoder::beginPass(const at::Tensor &tokens_BT, bool keepsForBackward)
{
    TORCH_CHECK(tokens_BT.dim() == 2 && tokens_BT.scalar_type() == at::kLong,
                "tokens must be int64 [sequences, tokens]");
    growRopeTables(tokens_BT.size(1));
    PassShape pass;
    pass.model = &m_shape;
    pass.batch = tokens_BT.size(0);
    pass.positions = tokens_BT.size(1);
    pass.cosine_TH = m_rope.cosine_TH;
    pass.sine_TH = m_rope.sine_TH;
    pass.keepsForBackward = keepsForBackward;
    return pass;
}

at::Tensor Decoder::forwardBackward(const at::Tensor &tokens_BT, const at::Tensor &targets_BT, double lossScale,
                                    bool lastMicroBatch, NumberCheck *check)
{
    const at::NoGradGuard noGrad;
    PassShape pass = beginPass(tokens_BT, true);
    pass.check = check;
    const at::Tensor tokens_M = tokens_BT.reshape({-1});
    m_engine->beginPass(engine::Engine::PassKind::Train, lastMicroBatch);
    std::vector<BlockSaved> saved(m_blocks.size());
    Stream stream = forwardUnits(pass, tokens_M, saved);
    const Head::Result result = runHead(pass, stream, targets_BT.reshape({-1}), lossScale, true);
    backwardUnits(pass, result.d_MC, tokens_M, saved);
    m_engine->endPass();
    if (m_offload)
        m_offload->endPass();
    return result.loss;
}

at::Tensor Decoder::forwardLoss(const at::Tensor &tokens_BT, const at::Tensor &targets_BT, double lossScale)
{
    const at::NoGradGuard noGrad;
    const PassShape pass = beginPass(tokens_BT, false);
    m_engine->beginPass(engine::Engine::PassKind::Evaluate, false);
    std::vector<BlockSaved> unused(m_blocks.size());
    Stream stream = forwardUnits(pass, tokens_BT.reshape({-1}), unused);
    const Head::Result result = runHead(pass, stream, targets_BT.reshape({-1}), lossScale, false);
    m_engine->endPass();
    return result.loss;
}

at::Tensor Decoder::forwardLogits(const at::Tensor &tokens_BT)
{
    const at::NoGradGuard noGrad;
    const PassShape pass = beginPass(tokens_BT, false);
    m_engine->beginPass(engine::Engine::PassKind::Evaluate, false);
    std::vector<BlockSaved> unused(m_blocks.size());
    const Stream stream = forwardUnits(pass, tokens_BT.reshape({-1}), unused);
    m_engine->acquire(m_headUnit, m_engine->forwardPhase());
    if (m_shape.tiedEmbeddings)
        m_engine->acquire(m_embedding, m_engine->forwardPhase());
    const at::Tensor logits_MV = m_head->logits(pass, stream);
    m_engine->release(m_headUnit);
    if (m_shape.tiedEmbeddings)
        m_engine->release(m_embedding);
    m_engine->endPass();
    return logits_MV.view({pass.batch, pass.positions, m_shape.vocabulary});
}

Stream Decoder::forwardUnits(const PassShape &pass, const at::Tensor &tokens_M, std::vector<BlockSaved> &saved)
{
    observe::Observer &observer = m_engine->observer();
    Stream stream;
    m_engine->acquire(m_embedding, m_engine->forwardPhase(), {m_embedding + 1});
    {
        const observe::SpanScope span(observer,
                                      {"forward", SpanCategory::Compute, m_engine->forwardPhase(), m_embedding});
        const Workspace work(*m_engine, m_embedding, pass.keepsForBackward);
        stream.residual_MC = work.kept({pass.rows(), m_shape.hidden});
        ops::embedding(stream.residual_MC, m_engine->parameter(m_embedding, kEmbeddingWeight), tokens_M);
        pass.left(m_embedding, m_engine->forwardPhase(), "embedding", stream.residual_MC);
    }
    m_engine->release(m_embedding);
    const observe::UnitIndex firstTrained = m_engine->firstTrained();
    for (size_t i = 0; i < m_blocks.size(); ++i) {
        const Block &block = m_blocks[i];
        const bool isLast = i + 1 == m_blocks.size();
        if (isLast && m_shape.tiedEmbeddings)
            m_engine->acquire(block.unit(), m_engine->forwardPhase(), {m_headUnit, m_embedding});
        else
            m_engine->acquire(block.unit(), m_engine->forwardPhase(), {block.unit() + 1});
        const bool keeps = pass.keepsForBackward && block.unit() >= firstTrained;
        PassShape own = pass;
        own.keepsForBackward = keeps;
        {
            const observe::SpanScope span(observer,
                                          {"forward", SpanCategory::Compute, m_engine->forwardPhase(), block.unit()});
            stream = block.forward(own, stream, m_engine->settings(block.unit()).recompute, saved[i]);
        }
        // The last block's backward is the next that blocks do, so its parameters stay.
        m_engine->release(block.unit(), isLast && keeps);
        if (m_offload)
            m_offload->finishStore(); // of the block before
        if (!keeps)
            saved[i] = {};
        else if (!isLast && m_engine->settings(block.unit()).activationOffload)
            offload().store(block.unit(), saved[i].matrices()); // the last one's are needed at once
        observer.sampleMemory();
    }
    return stream;
}

Head::Result Decoder::runHead(const PassShape &pass, Stream &stream, const at::Tensor &targets_M, double lossScale,
                              bool backward)
{
    const Phase phase = backward ? Phase::Backward : m_engine->forwardPhase();
    m_engine->acquire(m_headUnit, m_engine->forwardPhase());
    if (m_shape.tiedEmbeddings)
        m_engine->acquire(m_embedding, m_engine->forwardPhase());
    Head::Result result;
    {
        const observe::SpanScope span(m_engine->observer(), {"loss", SpanCategory::Compute, phase, m_headUnit});
        result = m_head->run(pass, stream, targets_M, lossScale, backward);
        stream = {};
        if (pass.check)
            m_head->lookAtGradients(*pass.check);
    }
    m_engine->release(m_headUnit);
    if (m_shape.tiedEmbeddings)
        m_engine->release(m_embedding);
    if (backward)
        m_engine->reduce(m_headUnit);
    m_engine->observer().sampleMemory();
    return result;
}

void Decoder::backwardUnits(const PassShape &pass, const at::Tensor &d_MC, const at::Tensor &tokens_M,
                            std::vector<BlockSaved> &saved)
{
    observe::Observer &observer = m_engine->observer();
    const observe::UnitIndex first = m_engine->firstTrained();
    for (size_t i = m_blocks.size(); i-- > 0 && m_blocks[i].unit() >= first;) {
        const Block &block = m_blocks[i];
        const bool goesOn = i > 0 && m_blocks[i - 1].unit() >= first;
        if (goesOn)
            m_engine->acquire(block.unit(), Phase::Backward, {block.unit() - 1});
        else
            m_engine->acquire(block.unit(), Phase::Backward);
        if (m_offload) {
            m_offload->wait(block.unit(), saved[i].matrices());
            if (goesOn)
                m_offload->fetch(m_blocks[i - 1].unit());
        }
        block.recompute(pass, saved[i]);
        {
            const observe::SpanScope span(observer, {"backward", SpanCategory::Compute, Phase::Backward, block.unit()});
            block.backward(pass, d_MC, saved[i]);
            if (pass.check)
                pass.check->lookAtGradients(block.unit());
        }
        m_engine->release(block.unit());
        m_engine->reduce(block.unit());
        observer.sampleMemory();
    }
    if (first == m_embedding) {
        // Needs no parameters. Where tied, this is the weight's last use, and the gradient of the head is there
        // already.
        const observe::SpanScope span(observer, {"backward", SpanCategory::Compute, Phase::Backward, m_embedding});
        const Workspace work(*m_engine, m_embedding, false);
        ops::embeddingBackward(m_engine->gradient(m_embedding, kEmbeddingWeight), d_MC, tokens_M);
        if (pass.check)
            pass.check->lookAtGradients(m_embedding);
    }
    m_engine->reduce(m_embedding);
    observer.sampleMemory();
}

} // namespace shardscope::model
