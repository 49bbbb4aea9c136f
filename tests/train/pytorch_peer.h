// SPDX-License-Identifier: Apache-2.0
// Our side of tests/peers/torch_*.py: the wheel's own Python trains what we have trained.
#pragma once

#include "core/base/result.h"
#include "core/data/dataset.h"
#include "core/model/decoder.h"

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace shardscope::testing {

/// The Python that has PyTorch; it need not exist.
std::filesystem::path peerPython();
/// Appends all weights in fp32, in the order of the units, to a file; fills the specification's index. All ranks.
void dumpWeights(model::Decoder &decoder, const std::filesystem::path &path, nlohmann::json &spec);
void dumpTokens(const data::Dataset &dataset, int64_t samples, const std::filesystem::path &path);
/// The model's sizes and the optimizer's settings; no weights or tokens yet.
nlohmann::json specificationOf(const config::RunConfiguration &configuration, const shapes::ModelShape &shape,
                               int64_t steps);
/// What a script of tests/peers/ prints. Its files are made in `folder`. Python takes seconds to import PyTorch: give
/// one call all that there is to train.
Result<nlohmann::json> runPeer(const std::string &script, const nlohmann::json &spec,
                               const std::filesystem::path &folder);
/// Step by step, relative.
void expectNear(const std::vector<double> &ours, const std::vector<double> &peer, double tolerance, const char *what);

} // namespace shardscope::testing
