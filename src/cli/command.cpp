#include "cli/command.h"

#include <csignal>
#include <cstdlib>

#include <fmt/core.h>

namespace spool::cli {

namespace {

std::atomic<bool> interrupt_flag{false};
std::atomic<bool> terminate_flag{false};

void on_signal(int number) {
    if (number == SIGTERM) {
        terminate_flag = true;
    }
    if (interrupt_flag.exchange(true)) {
        std::_Exit(128 + number);
    }
}

} // namespace

void print_json(const Json& object) { fmt::print("{}\n", json_text(object)); }

const std::atomic<bool>& interrupted() { return interrupt_flag; }

bool told_to_end() { return terminate_flag; }

void clear_interrupt() { interrupt_flag = false; }

void catch_interrupts() {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
}

} // namespace spool::cli
