#include "formats/byte_reader.h"

namespace spool {

std::string printable(std::string_view text) {
    constexpr size_t limit = 80;
    std::string result(text.substr(0, limit));
    for (char& c : result) {
        if (c < ' ' || c > '~') {
            c = '?';
        }
    }
    return text.size() > limit ? result + "..." : result;
}

} // namespace spool
