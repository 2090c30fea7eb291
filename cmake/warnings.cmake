# One interface target with the flags of spool's own code; nothing third-party is compiled with it.
add_library(spool-flags INTERFACE)
target_compile_options(spool-flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                             -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual)
if(SPOOL_WERROR)
    target_compile_options(spool-flags INTERFACE -Werror)
endif()
if(SPOOL_SANITIZE)
    target_compile_options(spool-flags INTERFACE -fsanitize=${SPOOL_SANITIZE} -fno-omit-frame-pointer)
    # GCC's own library looks uninitialised to it once instrumented (std::regex; GCC bug 105562).
    target_compile_options(spool-flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(spool-flags INTERFACE -fsanitize=${SPOOL_SANITIZE})
endif()
