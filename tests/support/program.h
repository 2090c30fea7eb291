// Running the spool program as a user would, and looking at what it printed.
#pragma once

#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "core/file.h"
#include "core/json.h"
#include "support/model.h"
#include "support/temporary_folder.h"

namespace spool::test {

struct ProgramResult {
    int exit_code = -1; ///< 128 + signal if it was killed
    std::string out;
    std::string err;

    /// stdout as JSON; a discarded value if it is not one JSON object.
    Json json() const { return Json::parse(out, nullptr, false); }
};

class Program {
  public:
    /// Starts `executable` with `arguments` and `input` as stdin.
    explicit Program(const std::vector<std::string>& arguments, const std::string& input = "",
                     const std::string& executable = SPOOL_BINARY) {
        write_text(folder_ / "in", input);
        std::vector<std::string> words = {executable};
        words.insert(words.end(), arguments.begin(), arguments.end());
        std::vector<char*> argv;
        argv.reserve(words.size() + 1);
        for (auto& word : words) {
            argv.push_back(word.data());
        }
        argv.push_back(nullptr);
        posix_spawn_file_actions_t actions{};
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, (folder_ / "in").c_str(), O_RDONLY, 0);
        constexpr int create = O_WRONLY | O_CREAT | O_TRUNC;
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ / "out").c_str(), create, 0600);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "err").c_str(), create, 0600);
        posix_spawn(&child_, executable.c_str(), &actions, nullptr, argv.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
    }

    void send(int signal) const { ::kill(child_, signal); }
    std::string out_so_far() const { return read_text(folder_ / "out"); }

    ProgramResult wait() const {
        int status = 0;
        ::waitpid(child_, &status, 0);
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return {code, read_text(folder_ / "out"), read_text(folder_ / "err")};
    }

  private:
    TemporaryFolder folder_;
    pid_t child_ = 0;
};

inline ProgramResult run_spool(const std::vector<std::string>& arguments, const std::string& input = "") {
    return Program(arguments, input).wait();
}

} // namespace spool::test
