// A program on a terminal of its own (a pty): what a user would type goes in, what they would see comes out.
#pragma once

#include <chrono>
#include <csignal>
#include <poll.h>
#include <pty.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace spool::test {

class Terminal {
  public:
    Terminal(const std::vector<std::string>& arguments, unsigned short columns, unsigned short rows) {
        std::vector<std::string> words = {SPOOL_BINARY};
        words.insert(words.end(), arguments.begin(), arguments.end());
        std::vector<char*> argv;
        argv.reserve(words.size() + 1);
        for (auto& word : words) {
            argv.push_back(word.data());
        }
        argv.push_back(nullptr);
        const winsize size{rows, columns, 0, 0};
        child_ = ::forkpty(&master_, nullptr, nullptr, &size);
        if (child_ == 0) {
            ::setenv("TERM", "xterm", 1);
            ::execv(argv[0], argv.data());
            ::_exit(127);
        }
    }
    ~Terminal() {
        if (child_ > 0) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, nullptr, 0);
        }
        ::close(master_);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    void type(std::string_view keys) const {
        [[maybe_unused]] const auto written = ::write(master_, keys.data(), keys.size());
    }
    void signal(int number) const { ::kill(child_, number); }
    /// True once `text` has been shown since the last call.
    bool shows(std::string_view text, int seconds = 20) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
        while (true) {
            const size_t found = screen_.find(text, seen_);
            if (found != std::string::npos) {
                seen_ = found + text.size();
                return true;
            }
            if (std::chrono::steady_clock::now() > deadline || !read_some()) {
                return false;
            }
        }
    }
    /// Everything shown so far, escape sequences and all.
    const std::string& screen() const { return screen_; }
    int exit_code() {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (read_some() && std::chrono::steady_clock::now() < deadline) {
        }
        if (std::chrono::steady_clock::now() >= deadline) {
            ::kill(child_, SIGKILL);
        }
        int status = 0;
        ::waitpid(child_, &status, 0);
        child_ = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

  private:
    /// False at the end of the program's output.
    bool read_some() {
        pollfd ready{master_, POLLIN, 0};
        if (::poll(&ready, 1, 200) == 0) {
            return true;
        }
        char buffer[4096];
        const ssize_t count = ::read(master_, buffer, sizeof buffer);
        if (count <= 0) {
            return false;
        }
        screen_.append(buffer, static_cast<size_t>(count));
        return true;
    }

    pid_t child_ = 0;
    int master_ = -1;
    std::string screen_;
    size_t seen_ = 0;
};

} // namespace spool::test
