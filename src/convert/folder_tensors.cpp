#include "convert/folder_tensors.h"

#include <algorithm>

#include "core/error.h"

namespace spool {

FolderTensors::FolderTensors(const std::filesystem::path& folder) : weights_(folder) {}

const TensorView& FolderTensors::require(const std::string& name) const {
    const TensorView* tensor = weights_.find(name);
    if (tensor == nullptr) {
        fail(ErrorCode::bad_file, "{} is missing", weights_.describe(name));
    }
    return *tensor;
}

void FolderTensors::check_shape(const std::string& name, std::span<const int64_t> found,
                                const std::vector<int64_t>& expected) const {
    if (!std::ranges::equal(found, expected)) {
        fail(ErrorCode::bad_file, "{} has shape {}, but config.json calls for {}", weights_.describe(name),
             shape_string(found), shape_string(expected));
    }
}

void FolderTensors::add(GgufWriter& writer, const std::string& from, const std::string& to, ggml_type type,
                        const std::vector<int64_t>& shape, RowOrder order) {
    const TensorView& tensor = require(from);
    check_shape(from, tensor.shape, shape);
    mark_used(from);
    writer.add(to, type, {shape.rbegin(), shape.rend()},
               stream_rows(weights_.describe(from), tensor, type, std::move(order)));
    ++report_.tensors;
}

void FolderTensors::refuse_leftovers(const std::string& model,
                                     const std::function<bool(std::string_view)>& ignored) const {
    for (const auto& [name, tensor] : weights_.tensors()) {
        if (!used_.contains(name) && !ignored(name)) {
            fail(ErrorCode::unsupported, "{} has no place in {}", weights_.describe(name), model);
        }
    }
}

ggml_type fit(ggml_type type, int64_t cols, ModelReport& report) {
    if (cols % ggml_blck_size(type) == 0) {
        return type;
    }
    ++report.unaligned;
    return GGML_TYPE_F16;
}

bool is_four_or_five_bit(ggml_type type) {
    return type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_0 ||
           type == GGML_TYPE_Q5_1;
}

} // namespace spool
