#include "chat/turn.h"

namespace spool {

std::string_view to_string(TurnFault fault) {
    switch (fault) {
    case TurnFault::none:
        return "none";
    case TurnFault::empty:
        return "empty";
    case TurnFault::unfinished_thinking:
        return "unfinished_thinking";
    case TurnFault::timed_out:
        return "timed_out";
    case TurnFault::degenerate:
        return "degenerate";
    }
    return "unknown";
}

std::string_view explain(TurnFault fault) {
    switch (fault) {
    case TurnFault::none:
        return "the reply stands";
    case TurnFault::empty:
        return "the reply was empty";
    case TurnFault::unfinished_thinking:
        return "the thinking did not come to an end";
    case TurnFault::timed_out:
        return "the time limit was reached";
    case TurnFault::degenerate:
        return "the reply repeated one token again and again";
    }
    return "unknown";
}

} // namespace spool
