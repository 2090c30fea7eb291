#include "generation/utf8_stream.h"

#include <utility>

namespace spool {

size_t incomplete_utf8_tail(std::string_view text) {
    for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if ((byte & 0xC0U) == 0x80U) {
            continue; // a continuation byte: its leader is further back
        }
        const size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
        return length > back ? back : 0;
    }
    return 0;
}

std::string Utf8Stream::push(std::string_view bytes) {
    pending_ += bytes;
    const size_t tail = incomplete_utf8_tail(pending_);
    std::string complete = pending_.substr(0, pending_.size() - tail);
    pending_.erase(0, pending_.size() - tail);
    return complete;
}

std::string Utf8Stream::finish() {
    return std::exchange(pending_, {}).empty() ? std::string() : std::string("\xEF\xBF\xBD");
}

} // namespace spool
