#include "train/trace_stream.h"

#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/random.h"

namespace spool::train {

TraceStream::TraceStream(const std::vector<std::filesystem::path>& folders, const std::string& split,
                         const std::string& vocab_sha256, uint64_t seed)
    : seed_(seed) {
    for (const auto& folder : folders) {
        Source source{.shards = std::make_unique<TokenShards>(folder, split)};
        if (source.shards->vocab_sha256() != vocab_sha256) {
            fail(ErrorCode::incompatible,
                 "{}: prepared for another vocabulary than the model's; run spool prepare with this model",
                 folder.string());
        }
        if (source.shards->size() == 0) {
            fail(ErrorCode::invalid_argument, "{}: has no traces in its split '{}'", folder.string(), split);
        }
        sources_.push_back(std::move(source));
    }
}

TraceView TraceStream::next() {
    const size_t number = turn_++ % sources_.size();
    Source& source = sources_[number];
    const size_t count = source.shards->size();
    const uint64_t epoch = source.taken / count;
    if (epoch != source.epoch) {
        source.epoch = epoch;
        source.order.resize(count);
        std::iota(source.order.begin(), source.order.end(), 0U);
        Random random(seed_ * 1000003 + number * 7919 + epoch);
        for (size_t i = count; i > 1; --i) {
            std::swap(source.order[i - 1], source.order[random.below(i)]);
        }
    }
    return source.shards->trace(source.order[source.taken++ % count]);
}

Json TraceStream::state() const {
    Json taken = Json::array();
    for (const Source& source : sources_) {
        taken.push_back(source.taken);
    }
    return {{"turn", turn_}, {"taken", taken}};
}

void TraceStream::restore(const Json& state) {
    const auto taken = state.at("taken").get<std::vector<uint64_t>>();
    if (taken.size() != sources_.size()) {
        fail(ErrorCode::invalid_argument, "the checkpoint was made with {} data folders, this run has {}",
             taken.size(), sources_.size());
    }
    turn_ = state.at("turn").get<uint64_t>();
    for (size_t i = 0; i < taken.size(); ++i) {
        sources_[i].taken = taken[i];
    }
}

size_t TraceStream::size() const {
    size_t total = 0;
    for (const Source& source : sources_) {
        total += source.shards->size();
    }
    return total;
}

TraceView TraceStream::trace(size_t i) const {
    for (const Source& source : sources_) {
        if (i < source.shards->size()) {
            return source.shards->trace(i);
        }
        i -= source.shards->size();
    }
    fail(ErrorCode::internal, "no trace {}", i);
}

} // namespace spool::train
