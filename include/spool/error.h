// What every function of spool throws.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#define SPOOL_API __attribute__((visibility("default")))

namespace spool {

enum class ErrorCode {
    invalid_argument, ///< the caller asked for something that makes no sense; fix the call
    not_found,        ///< a file or a named thing does not exist
    bad_file,         ///< a file is damaged, truncated or not what its name says
    incompatible,     ///< two valid things do not fit together (a bundle and another model)
    unsupported,      ///< valid, but this model or build cannot do it
    io,               ///< the operating system refused (disk full, permission)
    out_of_memory,    ///< an allocation failed, or a fixed size is used up
    interrupted,      ///< the user asked to stop
    internal          ///< a defect of spool
};

/// A short lower-case name of `code`, as printed in `--json` output.
SPOOL_API std::string_view to_string(ErrorCode code);

/// Carries a code and one message that says what was wrong, with which input, what was expected
/// and what to do next.
class SPOOL_API Error : public std::runtime_error {
  public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    ErrorCode code() const { return code_; }

  private:
    ErrorCode code_;
};

} // namespace spool
