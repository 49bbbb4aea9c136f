// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "profiler/collect/dynamic_library.h"

#include <cupti.h>

#include <cstdint>
#include <string>

namespace shardscope::collect {

/// The functions of CUPTI that are used here, found at run time.
struct CuptiApi
{
    decltype(&cuptiGetVersion) getVersion;
    decltype(&cuptiGetResultString) getResultString;
    decltype(&cuptiGetCallbackName) getCallbackName;
    decltype(&cuptiSubscribe) subscribe;
    decltype(&cuptiUnsubscribe) unsubscribe;
    decltype(&cuptiSetThreadIdType) setThreadIdType;
    decltype(&cuptiActivitySetAttribute) setAttribute;
    decltype(&cuptiActivityRegisterCallbacks) registerCallbacks;
    decltype(&cuptiActivityEnable) enable;
    decltype(&cuptiActivityDisable) disable;
    decltype(&cuptiActivityEnableRuntimeApi) enableRuntimeApi;
    decltype(&cuptiActivityEnableDriverApi) enableDriverApi;
    decltype(&cuptiActivityFlushAll) flushAll;
    decltype(&cuptiActivityGetNextRecord) getNextRecord;
    decltype(&cuptiActivityGetNumDroppedRecords) getDropped;
    decltype(&cuptiActivityPushExternalCorrelationId) push;
    decltype(&cuptiActivityPopExternalCorrelationId) pop;
    decltype(&cuptiGetStreamIdEx) getStreamId;

    /// An error names what is missing: the driver, the library, a function of it, or its version.
    static Result<CuptiApi> load();
    /// "CUPTI_ERROR_…"
    std::string text(CUptiResult result) const;

    DynamicLibrary library;
};

} // namespace shardscope::collect
