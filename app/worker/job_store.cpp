// SPDX-License-Identifier: Apache-2.0
#include "app/worker/job_store.h"

#include <c10/util/Exception.h>
#include <regex>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace shardscope::worker {

/// Ranks wait for each other in the store while one of them writes a checkpoint.
static constexpr std::chrono::minutes kExchangePatience{60};

static tl::unexpected<Error> explain(const RankEnvironment &place, bool server, std::chrono::seconds patience,
                                     std::string_view text)
{
    const int port = place.masterPort.value_or(0);
    if (server && text.find("EADDRINUSE") != std::string_view::npos)
        return fail("MASTER_PORT={} is in use by another program on this machine. Set MASTER_PORT to a free port for "
                    "all ranks, or end what listens there (ss -ltnp 'sport = :{}').",
                    port, port);
    // "Timed out after 301 seconds waiting for clients. 1/3 clients joined."
    static const std::regex joined("([0-9]+)/([0-9]+) clients joined");
    std::cmatch counts;
    if (server && std::regex_search(text.begin(), text.end(), counts, joined))
        return fail("{} of {} ranks came to MASTER_PORT={} within {} s. Are all ranks started, with this MASTER_ADDR, "
                    "MASTER_PORT and WORLD_SIZE?",
                    counts.str(1), counts.str(2), port, patience.count());
    if (server)
        return fail("Can't listen for the other ranks at MASTER_PORT={}: {}", port, text);
    return fail("Rank {} of {} could not reach rank 0 at {}:{} (MASTER_ADDR, MASTER_PORT). Are all ranks started, and "
                "do they have the same values? {}",
                place.rank, place.worldSize, place.masterAddress, port, text);
}

Result<c10::intrusive_ptr<c10d::Store>> connectStore(const RankEnvironment &place, std::chrono::seconds patience)
{
    if (place.worldSize == 1 && (!place.masterPort || place.supervised || place.agentStore))
        return c10::intrusive_ptr<c10d::Store>{};
    c10d::TCPStoreOptions options;
    options.isServer = place.rank == 0 && !place.agentStore;
    options.port = static_cast<uint16_t>(place.masterPort.value_or(0));
    options.numWorkers = static_cast<size_t>(place.worldSize);
    options.waitWorkers = true;
    options.timeout = patience;
    if (place.storeFd && options.isServer)
        options.masterListenFd = *place.storeFd;
    try {
        auto store = c10::make_intrusive<c10d::TCPStore>(place.masterAddress, options);
        store->setTimeout(kExchangePatience);
        return c10::intrusive_ptr<c10d::Store>(c10::make_intrusive<c10d::PrefixStore>(place.storePrefix, store));
    } catch (const c10::Error &error) {
        return explain(place, options.isServer, patience, error.what_without_backtrace());
    } catch (const std::exception &error) {
        return explain(place, options.isServer, patience, error.what());
    }
}

} // namespace shardscope::worker
