// SPDX-License-Identifier: Apache-2.0
#include "tests/model/ranks.h"

#include <ATen/Parallel.h>
#include <exception>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

namespace shardscope::test {

static void runRank(const engine::Communicator::Options &options, observe::Observer &observer,
                    const std::function<void(engine::Communicator &)> &f)
{
    at::set_num_threads(1);
    auto communicator = engine::Communicator::create(options, observer);
    if (!communicator)
        throw std::runtime_error(communicator.error().text);
    f(**communicator);
    (*communicator)->barrier();
}

void runRanks(int worldSize, observe::Observer &observer, const std::function<void(engine::Communicator &)> &f,
              at::Device device)
{
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::exception_ptr> errors(static_cast<size_t>(worldSize));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < worldSize; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                runRank({store, rank, worldSize, device, std::chrono::seconds(60)}, observer, f);
            } catch (...) {
                errors[static_cast<size_t>(rank)] = std::current_exception();
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    for (const std::exception_ptr &error : errors) {
        if (error)
            std::rethrow_exception(error);
    }
}

} // namespace shardscope::test
