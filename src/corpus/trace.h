// One recorded chain of thought, as text.
#pragma once

#include <string>
#include <vector>

namespace spool {

struct Message {
    std::string role; ///< "system", "user" or "assistant"
    std::string content;
};

struct Trace {
    std::vector<Message> messages; ///< what the reply answers; the last one is the user's
    std::string think;             ///< without tags; empty if there was none
    std::string answer;
};

} // namespace spool
