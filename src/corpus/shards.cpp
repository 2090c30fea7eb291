#include "corpus/shards.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/json_file.h"

namespace spool {

namespace {

/// The elements of a tensor of the index's types. Safetensors promises no alignment; spool's writer keeps it.
template <typename T>
std::span<const T> elements(const SafetensorsFile& file, std::string_view name, DType dtype,
                            size_t dimensions) {
    const TensorView& tensor = file.at(name);
    if (tensor.dtype != dtype || tensor.shape.size() != dimensions) {
        fail(ErrorCode::bad_file,
             "{}: the tensor '{}' is {} {}, expected {} with {} dimensions; write it again with "
             "`spool prepare`",
             file.path().string(), name, dtype_name(tensor.dtype), shape_string(tensor.shape),
             dtype_name(dtype), dimensions);
    }
    if (reinterpret_cast<uintptr_t>(tensor.data.data()) % alignof(T) != 0) {
        fail(ErrorCode::bad_file, "{}: the tensor '{}' does not begin at a multiple of {} bytes",
             file.path().string(), name, alignof(T));
    }
    return {reinterpret_cast<const T*>(tensor.data.data()), tensor.elements()};
}

void check_metadata(const SafetensorsFile& file, const std::string& key, const std::string& expected) {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end() || found->second != expected) {
        fail(ErrorCode::bad_file,
             "{}: the metadata field '{}' is {}, but index.json says {}: the files are not of one run",
             file.path().string(), key,
             found == file.metadata().end() ? "missing" : "\"" + found->second + "\"", expected);
    }
}

void check_count(const SafetensorsFile& file, const char* field, uint64_t found, uint64_t expected) {
    if (found != expected) {
        fail(ErrorCode::bad_file, "{}: holds {} {}, but index.json says {}: the files are not of one run",
             file.path().string(), found, field, expected);
    }
}

uint64_t count(const JsonFields& object, std::string_view key) {
    const JsonValue* value = object.find(key);
    if (value == nullptr || !value->is_number_unsigned()) {
        fail(ErrorCode::bad_file, "{}: the field '{}' must be a whole number of at least 0", object.source(),
             key);
    }
    return value->get<uint64_t>();
}

/// A file's name, not a path that leads somewhere else.
std::string plain_name(const JsonFields& shard) {
    std::string name = shard.string("file");
    if (name.empty() || name.starts_with('.') || name.find_first_of("/\\") != std::string::npos) {
        fail(ErrorCode::bad_file, "{}: 'file' is \"{}\", expected the name of a file in the folder",
             shard.source(), name);
    }
    return name;
}

JsonFields read_index(const std::filesystem::path& folder) {
    const auto path = folder / "index.json";
    if (!std::filesystem::exists(path)) {
        fail(ErrorCode::not_found, "{}: no such file; expected a folder written by `spool prepare`",
             path.string());
    }
    JsonFields index = read_json_file(path, size_t{256} << 20U);
    const uint32_t version = index.u32("version");
    if (version != shards_version) {
        fail(ErrorCode::unsupported, "{}: 'version' is {}, this program reads {}; prepare the corpus again",
             path.string(), version, shards_version);
    }
    return index;
}

} // namespace

TokenShards::TokenShards(const std::filesystem::path& folder, const std::string& split) {
    const JsonFields index = read_index(folder);
    const JsonFields base = index.object("base");
    vocab_sha256_ = base.string("vocab_sha256");
    const uint32_t vocab_size = base.u32("vocab_size");
    if (vocab_size == 0 || vocab_size > static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) {
        fail(ErrorCode::bad_file, "{}: 'vocab_size' is {}, expected 1 to 2^31 - 1", base.source(),
             vocab_size);
    }
    vocab_size_ = static_cast<int32_t>(vocab_size);

    const JsonFields entry = index.object("splits").object(split);
    const JsonValue* list = entry.find("shards");
    if (list == nullptr || !list->is_array()) {
        fail(ErrorCode::bad_file, "{}: the field 'shards' must be an array", entry.source());
    }
    shards_.reserve(list->size());
    for (const JsonValue& item : *list) {
        const JsonFields fields(entry.source() + ": shards", item);
        Shard shard = open_shard(folder / plain_name(fields));
        check_count(shard.file, "traces", shard.traces(), count(fields, "traces"));
        check_count(shard.file, "tokens", shard.tokens.size(), count(fields, "tokens"));
        shard.first = size_;
        size_ += shard.traces();
        tokens_ += shard.tokens.size();
        shards_.push_back(std::move(shard));
    }
    if (size_ != count(entry, "traces") || tokens_ != count(entry, "tokens")) {
        fail(ErrorCode::bad_file, "{}: says {} traces and {} tokens, its shards hold {} and {}",
             entry.source(), count(entry, "traces"), count(entry, "tokens"), size_, tokens_);
    }
}

TokenShards::Shard TokenShards::open_shard(const std::filesystem::path& path) const {
    Shard shard{.file = SafetensorsFile(path), .tokens = {}, .starts = {}, .prompts = {}, .answers = {}};
    check_metadata(shard.file, "version", std::to_string(shards_version));
    check_metadata(shard.file, "vocab_sha256", vocab_sha256_);
    shard.tokens = elements<Token>(shard.file, "tokens", DType::i32, 1);
    shard.starts = elements<int64_t>(shard.file, "starts", DType::i64, 1);
    shard.prompts = elements<int32_t>(shard.file, "prompts", DType::i32, 1);
    shard.answers = elements<int32_t>(shard.file, "answers", DType::i32, 2);
    check_traces(shard);
    check_answers(shard);
    return shard;
}

void TokenShards::check_traces(const Shard& shard) {
    const std::string path = shard.file.path().string();
    const auto& starts = shard.starts;
    if (starts.size() != shard.traces() + 1) {
        fail(ErrorCode::bad_file, "{}: 'starts' has {} entries, expected one more than the {} of 'prompts'",
             path, starts.size(), shard.traces());
    }
    if (starts.front() != 0 || starts.back() != static_cast<int64_t>(shard.tokens.size())) {
        fail(ErrorCode::bad_file, "{}: 'starts' runs from {} to {}, expected 0 to the {} of 'tokens'", path,
             starts.front(), starts.back(), shard.tokens.size());
    }
    for (size_t i = 0; i < shard.traces(); ++i) {
        if (starts[i + 1] <= starts[i] || starts[i + 1] > starts.back() ||
            starts[i + 1] - starts[i] > std::numeric_limits<int32_t>::max()) {
            fail(ErrorCode::bad_file,
                 "{}: 'starts' is {} at index {} and {} behind it, expected it to increase", path, starts[i],
                 i, starts[i + 1]);
        }
        const int64_t length = starts[i + 1] - starts[i];
        if (shard.prompts[i] < 0 || shard.prompts[i] > length) {
            fail(ErrorCode::bad_file, "{}: 'prompts' is {} at index {}, whose trace has {} tokens", path,
                 shard.prompts[i], i, length);
        }
    }
}

void TokenShards::check_answers(const Shard& shard) {
    const std::string path = shard.file.path().string();
    if (shard.file.at("answers").shape[1] != 4) {
        fail(ErrorCode::bad_file, "{}: 'answers' has the shape {}, expected [A, 4]", path,
             shape_string(shard.file.at("answers").shape));
    }
    int64_t last_trace = 0;
    int64_t last_offset = -1;
    for (size_t row = 0; row < shard.answers.size() / 4; ++row) {
        const auto values = shard.answers.subspan(4 * row, 4);
        const int64_t trace = values[0];
        const bool known = trace >= 0 && trace < static_cast<int64_t>(shard.traces());
        const auto index = static_cast<size_t>(known ? trace : 0);
        const int64_t length = known ? shard.starts[index + 1] - shard.starts[index] : 0;
        if (!known || values[1] < 0 || values[2] < 1 || int64_t{values[1]} + values[2] > length ||
            values[3] < 0 || values[3] > values[1]) {
            fail(ErrorCode::bad_file,
                 "{}: 'answers' row {} is [{}]: trace, offset, length and distance do not lie in one of the "
                 "{} traces",
                 path, row, fmt::join(values, ", "), shard.traces());
        }
        if (trace < last_trace || (trace == last_trace && values[1] <= last_offset)) {
            fail(ErrorCode::bad_file, "{}: 'answers' row {} is out of order", path, row);
        }
        last_trace = trace;
        last_offset = values[1];
    }
}

TraceView TokenShards::trace(size_t i) const {
    if (i >= size_) {
        fail(ErrorCode::invalid_argument, "trace {} was asked for, the split holds {}", i, size_);
    }
    const auto next = std::ranges::upper_bound(shards_, i, {}, &Shard::first);
    const Shard& shard = *std::prev(next);
    const size_t local = i - shard.first;
    const auto begin = static_cast<size_t>(shard.starts[local]);
    const auto end = static_cast<size_t>(shard.starts[local + 1]);
    TraceView view{
        .tokens = shard.tokens.subspan(begin, end - begin), .prompt = shard.prompts[local], .answers = {}};
    for (const Token token : view.tokens) {
        if (token < 0 || token >= vocab_size_) {
            fail(ErrorCode::bad_file,
                 "{}: 'tokens' of trace {} holds {}, which is no id of a vocabulary of {}",
                 shard.file.path().string(), local, token, vocab_size_);
        }
    }
    // The rows are ordered by trace: the first one of `local` by bisection.
    size_t low = 0;
    size_t high = shard.answers.size() / 4;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (static_cast<size_t>(shard.answers[4 * middle]) < local) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < shard.answers.size() / 4; ++low) {
        const auto row = shard.answers.subspan(4 * low, 4);
        if (static_cast<size_t>(row[0]) != local) {
            break;
        }
        view.answers.push_back({row[1], row[2], row[3]});
    }
    return view;
}

} // namespace spool
