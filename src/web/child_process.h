// A program that runs beside this one and ends with it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace spool {

class ChildProcess {
  public:
    /// Starts `arguments[0]`, looked up on the PATH, in a process group of its own, without a shell. Its
    /// standard input is empty, its errors go nowhere. Throws Error{unsupported} if there is no such program.
    explicit ChildProcess(const std::vector<std::string>& arguments);
    /// Ends the whole group.
    ~ChildProcess();
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    /// The next line of its standard output without its end; nothing if none came within `wait` or it ended.
    std::optional<std::string> read_line(std::chrono::milliseconds wait);

  private:
    std::optional<std::string> take_line();

    pid_t pid_ = -1;
    int output_ = -1;
    std::string pending_;
};

} // namespace spool
