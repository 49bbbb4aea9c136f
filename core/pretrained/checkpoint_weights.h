// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/files/checkpoint_reader.h"
#include "core/shapes/model_shape.h"

#include <filesystem>
#include <span>
#include <vector>

namespace shardscope::pretrained {

/// The weights of a checkpoint's parameters in fp32, whatever they are stored in.
class CheckpointWeights
{
public:
    /// Opens all files: a run that goes on may delete the checkpoint while it is read.
    static Result<CheckpointWeights> open(const std::filesystem::path &checkpoint);

    const files::Manifest &manifest() const { return m_reader.manifest(); }
    /// A message where the checkpoint has it not, or in another shape, or is damaged.
    Result<> read(const shapes::ParameterShape &parameter, files::ElementSpan elements, std::span<float> values);
    Result<std::vector<float>> readAll(const shapes::ParameterShape &parameter);

private:
    explicit CheckpointWeights(files::CheckpointReader reader)
        : m_reader(std::move(reader))
    {
    }

    files::CheckpointReader m_reader;
    std::vector<std::byte> m_stored;
};

} // namespace shardscope::pretrained
