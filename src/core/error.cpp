#include "core/error.h"

namespace spool {

std::string_view to_string(ErrorCode code) {
    switch (code) {
    case ErrorCode::invalid_argument:
        return "invalid_argument";
    case ErrorCode::not_found:
        return "not_found";
    case ErrorCode::bad_file:
        return "bad_file";
    case ErrorCode::incompatible:
        return "incompatible";
    case ErrorCode::unsupported:
        return "unsupported";
    case ErrorCode::io:
        return "io";
    case ErrorCode::out_of_memory:
        return "out_of_memory";
    case ErrorCode::interrupted:
        return "interrupted";
    case ErrorCode::internal:
        return "internal";
    }
    return "internal";
}

} // namespace spool
