#include "web/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/error.h"

extern char** environ; // NOLINT(readability-redundant-declaration): not every unistd.h declares it

namespace spool {

namespace {

using Clock = std::chrono::steady_clock;

class Pipe {
  public:
    Pipe() {
        if (::pipe2(ends_.data(), O_CLOEXEC) != 0) {
            fail(ErrorCode::io, "no pipe for a child process: {}", std::strerror(errno));
        }
    }
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    int write_end() const { return ends_[1]; }
    int take_read_end() { return std::exchange(ends_[0], -1); }

  private:
    void close_end(size_t end) {
        if (ends_[end] >= 0) {
            ::close(ends_[end]);
        }
    }

    std::array<int, 2> ends_{-1, -1};
};

struct SpawnSettings {
    SpawnSettings() {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
    }
    ~SpawnSettings() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;

    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
};

bool ended_within(pid_t pid, std::chrono::milliseconds wait) {
    for (const auto end = Clock::now() + wait; Clock::now() < end;) {
        if (::waitpid(pid, nullptr, WNOHANG) != 0) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

} // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(
            argument.c_str())); // NOLINT(cppcoreguidelines-pro-type-const-cast): as POSIX wants it
    }
    argv.push_back(nullptr);
    Pipe output;
    SpawnSettings settings;
    posix_spawn_file_actions_addopen(&settings.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&settings.actions, output.write_end(), STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&settings.actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&settings.attributes, 0);
    if (const int error =
            ::posix_spawnp(&pid_, argv[0], &settings.actions, &settings.attributes, argv.data(), environ)) {
        fail(ErrorCode::unsupported, "the program '{}' cannot be started: {}", arguments[0],
             std::strerror(error));
    }
    output_ = output.take_read_end();
}

ChildProcess::~ChildProcess() {
    ::close(output_);
    ::kill(-pid_, SIGTERM);
    if (!ended_within(pid_, std::chrono::milliseconds(3'000))) {
        ::kill(-pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    ::kill(-pid_, SIGKILL); // what it started and left behind
}

std::optional<std::string> ChildProcess::read_line(std::chrono::milliseconds wait) {
    const auto end = Clock::now() + wait;
    for (;;) {
        if (auto line = take_line()) {
            return line;
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
        pollfd waiting{.fd = output_, .events = POLLIN, .revents = 0};
        if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
            return std::nullopt;
        }
        std::array<char, 512> buffer{};
        const ssize_t count = ::read(output_, buffer.data(), buffer.size());
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return std::nullopt;
        }
        pending_.append(buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
    }
}

std::optional<std::string> ChildProcess::take_line() {
    const size_t end = pending_.find('\n');
    if (end == std::string::npos) {
        return std::nullopt;
    }
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return line;
}

} // namespace spool
