// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/config/live_change.h"
#include "core/config/run_configuration.h"
#include "core/control/rank_messages.h"
#include "core/run/run_folder.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace shardscope::launch {

/// What a user wants to become of a run.
struct ProposedChange
{
    const config::RunConfiguration &next;
    const config::RunConfiguration &accepted;  ///< what it is made on top of
    std::optional<int64_t> peakAllocatedBytes; ///< measured, of the rank that holds most
    bool force = false;                        ///< whatever memory it is predicted to take; not of a drive
};

/// Whether a changed configuration can run, and with nothing left to derive; a message where it can't.
using Admit = std::function<Result<config::RunConfiguration>(const ProposedChange &)>;

/// The configuration of an attempt as `set` changes it. Each change is made on top of the one accepted before, which
/// need not be in force yet: changes come into force one after the other.
class LiveSettings
{
public:
    /// What the attempt starts with. Without `admit` all that core/config lets through is admitted.
    LiveSettings(config::RunConfiguration start, Admit admit);

    /// The change that the ranks are to be told; nothing where it is so already. An error means that nothing happened.
    /// peakAllocatedBytes: measured, of the rank that holds most.
    Result<std::optional<control::ConfigurationChange>> set(const config::LiveRequest &request,
                                                            std::optional<int64_t> peakAllocatedBytes = {});
    /// Whether what set() refuses is refused for the memory alone: with force it would be a change.
    bool isForcible(config::LiveRequest request, std::optional<int64_t> peakAllocatedBytes) const;
    /// Back to before the last change, whatever memory that takes. An error where there is none, or where what was
    /// before can't be any more.
    Result<std::optional<control::ConfigurationChange>> undo(std::optional<int64_t> peakAllocatedBytes = {});

    const config::RunConfiguration &accepted() const { return m_accepted; }
    /// {"configuration": …, "start_rules": …, "undo": {key: {from, to}} or null}
    nlohmann::json describe() const;

private:
    Result<config::RunConfiguration> admitted(const config::LiveRequest &request,
                                              std::optional<int64_t> peakAllocatedBytes) const;
    std::optional<control::ConfigurationChange> accept(config::RunConfiguration next, std::string origin);

    config::RunConfiguration m_accepted;
    std::vector<config::RunConfiguration> m_before; ///< what undo() goes back to, the newest last
    Admit m_admit;
    size_t m_startRules;
    int64_t m_number = 0;
};

/// Sets what a run had in force last, in its newest attempt that did a step: config.json, and in-force.json over it.
Result<> applyInForce(config::RunConfiguration &configuration, const run::RunFolder &folder);

} // namespace shardscope::launch
