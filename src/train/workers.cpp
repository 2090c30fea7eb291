#include "train/workers.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/error.h"

namespace spool::train {

namespace {

/// One process may evaluate or write a checkpoint while the others wait.
constexpr std::chrono::minutes patience(60);

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

int number(const char* name, int lowest, int highest) {
    const std::string text = variable(name);
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < lowest || value > highest) {
        fail(ErrorCode::invalid_argument,
             "{}='{}': expected a number from {} to {}; torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and "
             "MASTER_PORT for every process",
             name, text, lowest, highest);
    }
    return value;
}

} // namespace

struct Workers::Group {
    c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

Workers::Workers() = default;
Workers::Workers(Workers&&) noexcept = default;
Workers::~Workers() = default;

Workers Workers::from_environment() {
    Workers workers;
    if (variable("WORLD_SIZE").empty()) {
        return workers;
    }
    workers.size_ = number("WORLD_SIZE", 1, 1 << 20);
    if (workers.size_ == 1) {
        return workers;
    }
    workers.rank_ = number("RANK", 0, workers.size_ - 1);
    const std::string host = variable("MASTER_ADDR");
    if (host.empty()) {
        fail(ErrorCode::invalid_argument,
             "MASTER_ADDR is not set: name the machine of the process of RANK 0");
    }
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(number("MASTER_PORT", 1, 65535));
    // torchrun's agent keeps the store itself, also across restarts of the processes.
    options.isServer = workers.leads() && variable("TORCHELASTIC_USE_AGENT_STORE") != "True";
    options.numWorkers = static_cast<size_t>(workers.size_);
    options.waitWorkers = false;
    try {
        auto store =
            c10::make_intrusive<c10d::PrefixStore>("spool-train/" + variable("TORCHELASTIC_RESTART_COUNT"),
                                                   c10::make_intrusive<c10d::TCPStore>(host, options));
        auto settings = c10d::ProcessGroupGloo::Options::create(patience);
        const std::string interface = variable("GLOO_SOCKET_IFNAME");
        settings->devices.push_back(interface.empty()
                                        ? c10d::ProcessGroupGloo::createDefaultDevice()
                                        : c10d::ProcessGroupGloo::createDeviceForInterface(interface));
        workers.group_ = std::make_unique<Group>(Group{c10::make_intrusive<c10d::ProcessGroupGloo>(
            store, workers.rank_, workers.size_, std::move(settings))});
    } catch (const std::exception& error) {
        fail(ErrorCode::io, "process {} of {} could not join the others at {}:{}: {}", workers.rank_,
             workers.size_, host, options.port, error.what());
    }
    return workers;
}

void Workers::sum(const std::vector<Tensor>& tensors) const {
    if (!group_ || tensors.empty()) {
        return;
    }
    // One buffer, on the CPU: a message for each of hundreds of small tensors would cost more than the copy.
    std::vector<Tensor> parts;
    parts.reserve(tensors.size());
    for (const Tensor& tensor : tensors) {
        parts.push_back(tensor.detach().flatten().to(at::kCPU, at::kFloat));
    }
    std::vector<Tensor> buffer = {at::cat(parts)};
    try {
        group_->gloo->allreduce(buffer)->wait();
    } catch (const std::exception& error) {
        fail(ErrorCode::io, "process {} of {} lost the others: {}", rank_, size_, error.what());
    }
    int64_t first = 0;
    for (const Tensor& tensor : tensors) {
        tensor.detach().copy_(buffer[0].narrow(0, first, tensor.numel()).view(tensor.sizes()));
        first += tensor.numel();
    }
}

} // namespace spool::train
