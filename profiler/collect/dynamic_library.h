// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"

#include <span>
#include <string>
#include <utility>

namespace shardscope::collect {

/// A library that is found at run time, so that the program starts where it is missing.
class DynamicLibrary
{
public:
    /// Takes the first of `names` that is loaded already, else the first that can be loaded. A name with a slash is a
    /// path, another is searched for as the loader does (RUNPATH, LD_LIBRARY_PATH, the system's folders).
    static Result<DynamicLibrary> open(std::span<const std::string> names);

    DynamicLibrary(DynamicLibrary &&other) noexcept
        : m_handle(std::exchange(other.m_handle, nullptr))
    {
    }
    DynamicLibrary &operator=(DynamicLibrary &&other) noexcept
    {
        std::swap(m_handle, other.m_handle);
        return *this;
    }
    ~DynamicLibrary();

    /// Null where the library has no such function.
    void *find(const char *name) const;

private:
    explicit DynamicLibrary(void *handle)
        : m_handle(handle)
    {
    }
    void *m_handle;
};

/// The folder that a library of this process was loaded from, "" if none has that file name.
std::string folderOfLoaded(const std::string &fileName);

} // namespace shardscope::collect
