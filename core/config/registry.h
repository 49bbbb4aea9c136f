// SPDX-License-Identifier: Apache-2.0
// The one registry of all keys of a run's configuration. --help, --set, TOML and JSON files, the window's form and
// every message about a key come from it.
#pragma once

#include "core/base/result.h"
#include "core/config/run_configuration.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shardscope::config {

/// A value as files and forms have it. Choices are texts.
using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                           std::vector<std::string>>;

enum class KeyType { Boolean, Integer, Real, Text, Choice, IntegerList, RealList, TextList };

/// The field of a RunConfiguration that a key is bound to.
using Field = std::variant<bool *, int64_t *, double *, std::string *, std::vector<int64_t> *, std::vector<double> *,
                           std::vector<std::string> *, Strategy *, Precision *, OptimizerKind *, RecordLevel *,
                           CheckpointFormat *, Prefetch *, ReduceEvery *, Recompute *, OffloadPlace *, OnNan *>;

/// What numbers are allowed; a list's every element. An absent end is open.
struct Range
{
    std::optional<double> minimum;
    std::optional<double> maximum;
    bool minimumExcluded = false;
    bool maximumExcluded = false;
    bool contains(double number) const;
};

struct Key
{
    std::string_view path;  ///< "train.steps"
    std::string_view label; ///< "Steps": the form's
    std::string_view unit;  ///< "steps"; "" where there is none
    std::string_view help;  ///< one sentence
    Range range;
    std::vector<std::string_view> choices; ///< of KeyType::Choice; of KeyType::Text: words with a meaning of their own
    /// The number that the field holds while the value is to be derived; files and people write "auto" for it.
    std::optional<double> automatic;
    bool live = false;                            ///< starred in docs/contract.md: may change while the job runs
    size_t length = 0;                            ///< of a list with a fixed number of elements; 0: any
    Field (*field)(RunConfiguration &) = nullptr; ///< bound at compile time

    KeyType type() const;
    std::string_view section() const; ///< "train"
    std::string_view name() const;    ///< "steps"
};

/// All keys, section by section, in the order in which files and forms show them.
std::span<const Key> keys();
/// The key of that path, or a message with the nearest right one.
Result<const Key *> findKey(std::string_view path);

/// The field's value; the text "auto" where it is to be derived.
Value valueOf(const RunConfiguration &configuration, const Key &key);
Value defaultOf(const Key &key);
/// Type and range are checked: messages name key, value and what is allowed. An integer serves as a real number.
Result<> setValue(RunConfiguration &configuration, const Key &key, const Value &value);

/// The same from a text, as --set and the form have it. Lists are separated by commas. C locale always.
Result<> setKey(RunConfiguration &configuration, std::string_view path, std::string_view text);
/// "train.steps=20"
Result<> setAssignment(RunConfiguration &configuration, std::string_view assignment);
/// A value as setKey() reads it.
std::string textOf(const Value &value);

/// What differs from the defaults, as (path, text) for setKey().
std::vector<std::pair<std::string, std::string>> changedKeys(const RunConfiguration &configuration);

/// "an integer from 1 to 1000000000", "one of: full, grad_op, none".
std::string allowedText(const Key &key);
/// The key's lines of --help: "train.steps  Optimizer steps. An integer ≥ 1; default 200."
std::string describe(const Key &key);

} // namespace shardscope::config
