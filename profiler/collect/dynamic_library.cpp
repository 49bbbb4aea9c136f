// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/dynamic_library.h"

#include <dlfcn.h>
#include <filesystem>
#include <link.h>

namespace shardscope::collect {

Result<DynamicLibrary> DynamicLibrary::open(std::span<const std::string> names)
{
    for (const std::string &name : names) {
        if (void *handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD))
            return DynamicLibrary(handle);
    }
    std::string reason;
    for (const std::string &name : names) {
        if (void *handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
            return DynamicLibrary(handle);
        const char *error = ::dlerror();
        if (reason.empty() && error)
            reason = error;
    }
    return fail("{}", reason.empty() ? std::string("no library was named") : reason);
}

DynamicLibrary::~DynamicLibrary()
{
    if (m_handle)
        ::dlclose(m_handle);
}

void *DynamicLibrary::find(const char *name) const
{
    return ::dlsym(m_handle, name);
}

std::string folderOfLoaded(const std::string &fileName)
{
    std::pair<const std::string *, std::string> search(&fileName, {});
    ::dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *data) {
            auto &[wanted, folder] = *static_cast<std::pair<const std::string *, std::string> *>(data);
            const std::filesystem::path path = info->dlpi_name;
            if (path.filename() != *wanted)
                return 0;
            folder = path.parent_path().string();
            return 1;
        },
        &search);
    return search.second;
}

} // namespace shardscope::collect
