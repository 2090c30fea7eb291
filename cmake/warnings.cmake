# One interface target with the flags of spool's own code; nothing third-party is compiled with it.
add_library(spool-flags INTERFACE)
target_compile_options(spool-flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                             -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual)
if(SPOOL_WERROR)
    target_compile_options(spool-flags INTERFACE -Werror)
endif()
if(SPOOL_SANITIZE)
    target_compile_options(spool-flags INTERFACE -fsanitize=${SPOOL_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(spool-flags INTERFACE -fsanitize=${SPOOL_SANITIZE})
endif()
