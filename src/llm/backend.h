// One-time set-up of ggml and libllama, and where their log lines go.
#pragma once

namespace spool {

/// Initialises libllama once a process (idempotent, thread-safe) and routes its log: warnings and errors are
/// kept for last_backend_message(), everything is printed when the log level is debug.
void init_backend();

/// libllama reports failures as a null pointer; this is the last error line it logged on this thread ("" if
/// none), for use in our own messages.
const char* last_backend_message();
void clear_backend_message();

/// Physical cores of this machine, the default number of threads. At least 1.
int physical_cores();

} // namespace spool
