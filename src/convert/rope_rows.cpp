#include "convert/rope_rows.h"

namespace spool {

namespace {

/// Calls visit(interleaved row, halves row) for every row.
template <typename Visit>
void for_each_pair(int64_t rows, uint32_t heads, Visit visit) {
    const int64_t head_size = rows / heads;
    const int64_t half = head_size / 2;
    for (int64_t head = 0; head < heads; ++head) {
        for (int64_t i = 0; i < half; ++i) {
            for (int64_t side = 0; side < 2; ++side) {
                visit(head * head_size + 2 * i + side, head * head_size + side * half + i);
            }
        }
    }
}

} // namespace

std::vector<int64_t> rows_from_hugging_face(int64_t rows, uint32_t heads) {
    std::vector<int64_t> order(static_cast<size_t>(rows));
    for_each_pair(rows, heads, [&](int64_t interleaved, int64_t halves) {
        order[static_cast<size_t>(interleaved)] = halves;
    });
    return order;
}

std::vector<int64_t> rows_to_hugging_face(int64_t rows, uint32_t heads) {
    std::vector<int64_t> order(static_cast<size_t>(rows));
    for_each_pair(rows, heads, [&](int64_t interleaved, int64_t halves) {
        order[static_cast<size_t>(halves)] = interleaved;
    });
    return order;
}

} // namespace spool
