#include "llm/backend.h"

#include <algorithm>
#include <mutex>
#include <string>

#include <llama.h>

#include "common.h"
#include "core/log.h"

namespace spool {

namespace {

thread_local std::string last_message;

void on_log(ggml_log_level level, const char* text, void* /*user_data*/) {
    std::string line(text);
    while (!line.empty() && line.back() == '\n') {
        line.pop_back();
    }
    if (level == GGML_LOG_LEVEL_ERROR && !line.empty()) {
        last_message = line;
    }
    log(LogLevel::debug, line);
}

} // namespace

void init_backend() {
    static std::once_flag once;
    std::call_once(once, [] {
        llama_log_set(on_log, nullptr);
        llama_backend_init();
    });
}

const char* last_backend_message() { return last_message.c_str(); }
void clear_backend_message() { last_message.clear(); }

int physical_cores() { return std::max(1, common_cpu_get_num_physical_cores()); }

} // namespace spool
