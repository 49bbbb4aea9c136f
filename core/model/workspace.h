// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/engine/engine.h"

#include <ATen/ops/empty.h>

namespace shardscope::model {

/// Allocates for one unit's computation: what is kept for the backward is tagged as activations, all else (also what
/// operators allocate inside) as temporary, because that tag is in force for the length of this object.
class Workspace
{
public:
    Workspace(engine::Engine &engine, observe::UnitIndex unit, bool keeps)
        : m_observer(engine.observer())
        , m_unit(unit)
        , m_options(at::TensorOptions(engine.device()).dtype(engine.computeType()))
        , m_kept(keeps ? MemoryCategory::Activations : MemoryCategory::Temporary)
        , m_scope(m_observer, {MemoryCategory::Temporary, unit})
    {
    }

    at::Tensor temporary(at::IntArrayRef sizes) const { return at::empty(sizes, m_options); }
    at::Tensor temporaryFp32(at::IntArrayRef sizes) const { return at::empty(sizes, m_options.dtype(at::kFloat)); }
    at::Tensor kept(at::IntArrayRef sizes) const
    {
        const auto scope = keptScope();
        return at::empty(sizes, m_options);
    }
    at::Tensor keptFp32(at::IntArrayRef sizes) const
    {
        const auto scope = keptScope();
        return at::empty(sizes, m_options.dtype(at::kFloat));
    }
    /// Round an operator whose results are kept.
    observe::MemoryScope keptScope() const { return observe::MemoryScope(m_observer, {m_kept, m_unit}); }

private:
    observe::Observer &m_observer;
    observe::UnitIndex m_unit;
    at::TensorOptions m_options;
    MemoryCategory m_kept;
    observe::MemoryScope m_scope;
};

} // namespace shardscope::model
